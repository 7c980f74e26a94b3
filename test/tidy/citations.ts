import type { SourceFile } from "./source-files.ts";

/** What a comment may cite of a page of the documentation: its title and its headings, without marks of code. */
export const headingsOf = (page: string): ReadonlySet<string> =>
  new Set([...page.matchAll(/^#+ (.+)$/gm)].map(([, heading = ""]) => heading.replaceAll("`", "")));

/** A citation such as `docs/security, "Trace"`; further headings of the page may follow after "and" or a comma. */
const CITATION = /\b(docs\/[a-z0-9-]+|README), ("[^"]+"(?:(?:,| and) "[^"]+")*)/g;

/**
 * The citations in a file that lead nowhere: to a page or a heading that is not there, or to the README, which is a front page.
 *
 * @param pages the headings of each page, by names such as `docs/security`
 */
export function citationProblems(
  { path, text }: SourceFile,
  pages: ReadonlyMap<string, ReadonlySet<string>>,
): string[] {
  // A citation may go on in the next line of a comment.
  const joined = text.replace(/\n\s*(?:\*|\/\/) /g, " ");
  return [...joined.matchAll(CITATION)].flatMap(([, page = "", cited = ""]) => {
    if (page === "README") return [`${path}: cite a page of src/docs in the place of README, ${cited}`];
    const headings = pages.get(page);
    if (!headings) return [`${path}: there is no page ${page}`];
    return [...cited.matchAll(/"([^"]+)"/g)]
      .map(([, heading = ""]) => heading)
      .filter((heading) => !headings.has(heading))
      .map((heading) => `${path}: ${page} has no heading "${heading}"`);
  });
}
