import { linesOf, type SourceFile } from "./source-files.ts";

/** Where a file is over `linesMax` lines. */
export function lengthProblems(file: SourceFile, linesMax: number): string[] {
  const count = linesOf(file).length - 1;
  return count > linesMax ? [`${file.path}: ${count} lines; look for the second idea in it`] : [];
}

/** The parts of a path that are not kebab-case, or do not say what is inside. */
export const nameProblems = (path: string): string[] =>
  path.split("/").flatMap((part) => {
    const [name = ""] = part.split(".");
    if (!/^[a-z0-9]+(-[a-z0-9]+)*$/.test(name)) return [`${path}: ${part} is not kebab-case`];
    const isVague = /^(utils?|helpers?|common)$/.test(name);
    return isVague ? [`${path}: name ${part} after what is in it`] : [];
  });

const TOP_LEVEL = [
  ...["package.json", "bun.lock", "bunfig.toml", "tsconfig.json", "biome.json", "drizzle.config.ts"],
  ...["src", "migrations", "test", "Dockerfile", "LICENSE"],
  ...["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"],
];

/** The names at the repository's top that are neither listed here, nor hidden, nor ignored by git. */
export function strangersAtTop(names: readonly string[], gitignore: string): string[] {
  const ignored = gitignore
    .split("\n")
    .filter((line) => line !== "" && !line.startsWith("#"))
    .map((line) => new Bun.Glob(line.replace(/^\/|\/$/g, "")));
  return names.filter(
    (name) => !name.startsWith(".") && !TOP_LEVEL.includes(name) && !ignored.some((glob) => glob.match(name)),
  );
}

/** The folders that hold one file and no folder: the file says what it is without them. */
export function lonelyFolders(paths: readonly string[]): string[] {
  const parts = new Map<string, Set<string>>();
  for (const path of paths) {
    const names = path.split("/");
    for (let depth = 1; depth < names.length; depth++) {
      const folder = names.slice(0, depth).join("/");
      parts.set(folder, (parts.get(folder) ?? new Set()).add(names[depth] ?? ""));
    }
  }
  return [...parts].filter(([, inside]) => inside.size === 1).map(([folder]) => folder);
}
