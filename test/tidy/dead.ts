import { join } from "node:path";
import { type ImportGraph, importGraph, importsOf, reachedFrom, targetOf } from "./imports.ts";
import { lineAt, type SourceFile } from "./source-files.ts";

/** The files that cannot be reached from the entries, by an import or by a path that is made from `import.meta.dir`. */
export function deadFiles(files: readonly SourceFile[], entries: readonly string[]): string[] {
  const reached = reachedFrom(entries, withNamedFiles(files));
  return files
    .map(({ path }) => path)
    .filter((path) => !entries.includes(path) && !reached.has(path))
    .map((path) => `${path}: nothing imports it`);
}

/** A file may name another one to run it in a process of its own: `join(import.meta.dir, "child.ts")`. */
function withNamedFiles(files: readonly SourceFile[]): ImportGraph {
  const graph = importGraph(files);
  return new Map(
    files.map(({ path, text }) => {
      const named = [...text.matchAll(/\bimport\.meta\.dir,\s*"([^"]+)"/g)].map(([, to = ""]) =>
        join(path, "..", to),
      );
      return [path, new Set([...(graph.get(path) ?? []), ...named])];
    }),
  );
}

/**
 * The names that a file exports and no other file imports. A type may be exported for the sake of another export of its
 * file, which names it.
 */
export const deadExports = (files: readonly SourceFile[]): string[] =>
  notImported(files)
    .filter(({ file, name, kind }) => !(TYPES.includes(kind) && isNamedByExport(file, name)))
    .map(({ file, name }) => `${file.path}: ${name} is exported, and nothing imports it`);

/**
 * The names that a file exports and none of these files uses, itself included. Of the files of src alone, these are what only
 * tests use.
 */
export const unusedExports = (files: readonly SourceFile[]): string[] =>
  notImported(files)
    .filter(({ file, name }) => !isNamedTwice(file, name))
    .map(({ file, name }) => `${file.path}: ${name} is exported, and only tests use it`);

type Exported = { readonly file: SourceFile; readonly name: string; readonly kind: string };

/** The names that a file exports and no other of these files imports. */
function notImported(files: readonly SourceFile[]): readonly Exported[] {
  const used = usedNames(files);
  return files.flatMap((file) =>
    exportsOf(file)
      .filter(({ name }) => !used.has(`${file.path} ${name}`) && !used.has(`${file.path} *`))
      .map((exported) => ({ file, ...exported })),
  );
}

/** Whether a file names it besides declaring it. Comments do not count. */
const isNamedTwice = ({ text }: SourceFile, name: string): boolean =>
  [...text.replace(COMMENT_LINE, "").matchAll(new RegExp(`\\b${name}\\b`, "g"))].length > 1;

const COMMENT_LINE = /^\s*(?:\/\/|\/?\*).*$/gm;

const TYPES = ["type", "interface"];
const DECLARATION =
  /^export (?:declare )?(?:abstract )?(?:async )?(function\*?|const|let|class|type|interface|enum) (\w+)/gm;
const LIST = /^export (?:type )?\{([^}]*)\}/gm;
/** An export whose names this reader does not find. */
const UNREADABLE = /^export (?:\*|(?:const|let) [[{])/m;

/** The names that a file exports, each with the word that declares it. Throws on a form of export that it cannot read. */
function exportsOf({ path, text }: SourceFile): { readonly name: string; readonly kind: string }[] {
  const unreadable = UNREADABLE.exec(text);
  if (unreadable) throw new Error(`${path}:${lineAt(text, unreadable.index)}: cannot read this export`);
  const declared = [...text.matchAll(DECLARATION)].map(([, kind = "", name = ""]) => ({ name, kind }));
  const listed = [...text.matchAll(LIST)].flatMap(([, names = ""]) =>
    namesIn(names).map(({ outside }) => ({ name: outside, kind: "list" })),
  );
  return [...declared, ...listed];
}

/** Whether another exported declaration of the file names the type. Each declaration begins a line without indent. */
function isNamedByExport({ text }: SourceFile, name: string): boolean {
  const itself = new RegExp(`^export (?:declare )?(?:type|interface) ${name}\\b`);
  return text
    .split(/\n(?=[a-z/])/)
    .some((part) => /^export /.test(part) && !itself.test(part) && new RegExp(`\\b${name}\\b`).test(part));
}

/** Each imported name, as "path name"; "path *" where a file may use every name of another. */
function usedNames(files: readonly SourceFile[]): ReadonlySet<string> {
  const used = files.flatMap((file) =>
    importsOf(file).flatMap((found) => {
      const target = targetOf(file, found);
      const braces = /\{([^}]*)\}/.exec(found.clause);
      return braces ? namesIn(braces[1] ?? "").map(({ inside }) => `${target} ${inside}`) : `${target} *`;
    }),
  );
  return new Set(used);
}

/** The names between braces: `type a as b` is `a` inside its file, and `b` outside. */
function namesIn(list: string): { readonly inside: string; readonly outside: string }[] {
  return list
    .split(",")
    .map((item) => item.trim().replace(/^type /, ""))
    .filter((item) => item !== "")
    .map((item) => {
      const [inside = "", outside = inside] = item.split(" as ");
      return { inside, outside };
    });
}
