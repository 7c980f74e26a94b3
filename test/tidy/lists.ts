/** What CONTRIBUTING says one has to touch to add something: its lists must be as short as they say. */

/** A list: the numbers in its heading, and how many files its points name at most. */
export type TouchList = {
  readonly noun: string;
  readonly atMost: number;
  readonly counted: number;
};

const HEADING = /^### … (.+?): (?:\d+ (?:to|or) )?(\d+) files/;
const POINT = /^\d+\. /;
/** A file that has to be touched: at the beginning of a point, or added by "and" or a semicolon; never one that is only mentioned. */
const FILE = /(?:^|, and |; )(`[^`]+`)/g;
const isPage = (file: string): boolean => /^`(README|src\/docs\/)/.test(file);

/** The lists of a page. The pages of the documentation that a list names count as one file. */
export function touchListsOf(text: string): readonly TouchList[] {
  return text.split(/\n(?=### )/).flatMap((section) => {
    const heading = HEADING.exec(section);
    if (!heading) return [];
    const points = section.split("\n").filter((line) => POINT.test(line));
    const files = points.map((line) => filesOf(line.replace(POINT, "")));
    const pages = files.flat().some(isPage) ? 1 : 0;
    const code = files.reduce((sum, named) => sum + named.filter((file) => !isPage(file)).length, 0);
    return [{ noun: heading[1] ?? "", atMost: Number(heading[2]), counted: code + pages }];
  });
}

/** The files of a point; of those joined by "or" the choice that names most. */
function filesOf(point: string): readonly string[] {
  const choices = point
    .replaceAll("*", "")
    .split(/; or /)
    .map((choice) => [...choice.matchAll(FILE)].map(([, file]) => file ?? ""));
  return choices.reduce((most, files) => (files.length > most.length ? files : most), []);
}
