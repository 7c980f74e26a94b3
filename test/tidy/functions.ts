import { linesOf, type SourceFile } from "./source-files.ts";

/** How the line ends on which the body of an arrow function begins. */
const ARROW = /=>(?: \(?[{[(]?)?$/;
/** How the line ends on which the body of any other function begins, or a class's static block. */
const BLOCK = /\)(?:: .+)? \{$|^static \{$/;
/** A statement or a class that ends the same way. */
const NOT_A_FUNCTION =
  /^(?:\} )?(?:if|else|for|while|switch|catch|do|try|finally)\b|^(?:export )?(?:abstract )?class |^\./;
const COMMENT = /^(?:\/\/|\/?\*)/;

/**
 * The functions whose body is over `linesMax` lines, wherever they stand; blank lines and comments do not count. The
 * linter has a rule for this too, but it leaves out getters, setters, static blocks, the closing brackets of the blocks
 * inside a function, and the lines of a text. It relies on the formatter: the line that ends a body has the indent of the
 * line on which the body begins.
 *
 * `isExempt` is asked with the first line of each function.
 */
export function longFunctions(
  file: SourceFile,
  linesMax: number,
  isExempt: (head: string) => boolean = () => false,
): string[] {
  const lines = linesOf(file);
  return lines.flatMap((_, index) => {
    const head = headOf(lines, index);
    if (head === null || isExempt(head)) return [];
    const count = bodyLines(lines, index);
    return count > linesMax ? [`${file.path}: a function of ${count} lines: ${head}`] : [];
  });
}

const indentOf = (line: string): number => line.length - line.trimStart().length;

/** The first line of the function whose body begins on this line; null where none does. */
function headOf(lines: readonly string[], end: number): string | null {
  const line = lines[end] ?? "";
  const text = line.trim();
  const isArrow = ARROW.test(text);
  if (COMMENT.test(text) || !(isArrow || BLOCK.test(text))) return null;
  // Parameters over several lines end with a line such as `): Answer {`.
  const start = text.startsWith(")")
    ? lines.findLastIndex((other, at) => at < end && other !== "" && indentOf(other) === indentOf(line))
    : end;
  const head = (lines[start] ?? "").trim();
  return !isArrow && NOT_A_FUNCTION.test(head) ? null : head;
}

function bodyLines(lines: readonly string[], begin: number): number {
  const indent = indentOf(lines[begin] ?? "");
  const isBlock = /[{[(]$/.test(lines[begin] ?? "");
  let count = 0;
  for (const line of lines.slice(begin + 1)) {
    const text = line.trim();
    if (text === "") continue;
    // A text over many lines may have any indent, so a block ends with its bracket alone.
    if (isBlock ? indentOf(line) === indent && /^[}\])]/.test(text) : indentOf(line) <= indent) break;
    if (!COMMENT.test(text)) count++;
  }
  return count;
}
