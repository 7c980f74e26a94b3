import { columns } from "../core/columns.ts";
import { printable } from "../core/hidden-characters.ts";

/** What people see without `--json`. Names, URLs and answers were written by others: they are made printable. */

type Field = readonly [name: string, value: string | number | boolean | null];

/** A sentence, the fields below it with their values aligned, and a closing remark where there is one. */
export function report(title: string, fields: readonly Field[], remark?: string): string {
  const width = Math.max(...fields.map(([name]) => name.length));
  const lines = fields.map(
    ([name, value]) => `  ${name.padEnd(width)}  ${printable(String(value ?? "none"))}`,
  );
  return [printable(title), "", ...lines, ...(remark === undefined ? [] : ["", remark])].join("\n");
}

/** Columns under a header, indented. */
export const table = (header: readonly string[], rows: readonly (readonly string[])[]): string =>
  columns([header, ...rows.map((row) => row.map(printable))])
    .map((line) => `  ${line}`.trimEnd())
    .join("\n");
