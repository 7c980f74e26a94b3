import { join } from "node:path";
import { lineAt, type SourceFile } from "./source-files.ts";

/** One import, or one export from another file, as it is written. */
export type Import = {
  readonly specifier: string;
  /** What stands between `import` and `from`, such as `{ type A, b }`. Empty for a call, which may use every name. */
  readonly clause: string;
  readonly typeOnly: boolean;
  readonly line: number;
};

const STATEMENT = /^(?:import|export)\s(?:([^;"'=()]*?)\sfrom\s*)?["']([^"']+)["']/gm;
const CALL = /\b(?:import|require)\(\s*["'`]([^"'`]+)["'`]/g;

/**
 * The imports as they are written, so that type imports count too. The reader relies on the formatter, which begins each
 * statement on a new line. It throws on an import statement that it cannot read.
 */
export function importsOf({ path, text }: SourceFile): Import[] {
  const statements = [...text.matchAll(STATEMENT)].map((match) => {
    const [, clause = "", specifier = ""] = match;
    const typeOnly = /^type\s/.test(clause);
    return { specifier, clause: clause.replace(/\s+/g, " "), typeOnly, line: lineAt(text, match.index) };
  });
  const calls = [...text.matchAll(CALL)].map(({ 1: specifier = "", index }) => {
    return { specifier, clause: "", typeOnly: false, line: lineAt(text, index) };
  });
  for (const { index } of text.matchAll(/^import\s/gm)) {
    if (!statements.some(({ line }) => line === lineAt(text, index)))
      throw new Error(`${path}:${lineAt(text, index)}: cannot read this import`);
  }
  return [...statements, ...calls].sort((a, b) => a.line - b.line);
}

/** The path that a relative import leads to; null for a package. */
export const targetOf = ({ path }: SourceFile, { specifier }: Import): string | null =>
  specifier.startsWith(".") ? join(path, "..", specifier) : null;

/** The imports between files: each path, with the paths that it imports. */
export type ImportGraph = ReadonlyMap<string, ReadonlySet<string>>;

export const importGraph = (files: readonly SourceFile[]): ImportGraph =>
  new Map(
    files.map((file) => {
      const targets = importsOf(file).map((found) => targetOf(file, found));
      return [file.path, new Set(targets.filter((target) => target !== null))];
    }),
  );

/** Every node that a walk from these nodes comes to. A start counts only where the walk comes back to it. */
export function reachedFrom(starts: Iterable<string>, graph: ImportGraph): Set<string> {
  const reached = new Set<string>();
  const open = [...starts];
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    for (const next of graph.get(node) ?? []) {
      if (reached.has(next)) continue;
      reached.add(next);
      open.push(next);
    }
  }
  return reached;
}
