import { readFileSync } from "node:fs";
import { join } from "node:path";

/** A file as text. `path` starts at the repository's top, with slashes. */
export type SourceFile = { readonly path: string; readonly text: string };

const REPOSITORY = join(import.meta.dir, "../..");

export const readRepositoryFile = (path: string): string => readFileSync(join(REPOSITORY, path), "utf8");

/** The repository's files that the pattern names, in the order of their paths. Installed packages are left out. */
export const filesOf = (pattern: string): SourceFile[] =>
  [...new Bun.Glob(pattern).scanSync(REPOSITORY)]
    .filter((path) => !path.includes("node_modules/"))
    .sort()
    .map((path) => ({ path, text: readRepositoryFile(path) }));

export const linesOf = ({ text }: SourceFile): readonly string[] => text.split("\n");

/** The number of the line that holds the character at `index`, from 1. */
export const lineAt = (text: string, index: number): number => text.slice(0, index).split("\n").length;
