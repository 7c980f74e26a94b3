import type { SourceFile } from "./source-files.ts";

/** What a comment may cite of the README: its headings, and the names in bold at the start of its paragraphs. */
export function namesIn(readme: string): ReadonlySet<string> {
  const headings = readme.matchAll(/^#+ (.+)$/gm);
  const paragraphs = readme.matchAll(/^(?:- )?\*\*([^*]+?)\.?\*\*/gm);
  return new Set([...headings, ...paragraphs].map(([, name = ""]) => name));
}

/** A citation such as `README, "Trace"`; further names may follow after "and" or a comma. */
const CITATION = /README, ("[^"]+"(?:(?:,| and) "[^"]+")*)/g;

/** The citations of the README, in the comments of a file, that name nothing of it. */
export function citationProblems({ path, text }: SourceFile, names: ReadonlySet<string>): string[] {
  // A citation may go on in the next line of a comment.
  const joined = text.replace(/\n\s*(?:\*|\/\/) /g, " ");
  return [...joined.matchAll(CITATION)]
    .flatMap(([, cited = ""]) => [...cited.matchAll(/"([^"]+)"/g)])
    .map(([, name = ""]) => name)
    .filter((name) => !names.has(name))
    .map((name) => `${path}: the README has no "${name}"`);
}
