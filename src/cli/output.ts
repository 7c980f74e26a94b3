import { columns } from "../core/columns.ts";

/** What people see without `--json`. */

type Field = readonly [name: string, value: string | number | boolean | null];

/** A sentence, the fields below it with their values aligned, and a last word where there is one. */
export function report(title: string, fields: readonly Field[], lastWord?: string): string {
  const width = Math.max(...fields.map(([name]) => name.length));
  const lines = fields.map(([name, value]) => `  ${name.padEnd(width)}  ${value ?? "none"}`);
  return [title, "", ...lines, ...(lastWord === undefined ? [] : ["", lastWord])].join("\n");
}

/** Columns under a header, indented. */
export const table = (header: readonly string[], rows: readonly (readonly string[])[]): string =>
  columns([header, ...rows])
    .map((line) => `  ${line}`.trimEnd())
    .join("\n");
