/** What people see without `--json`. */

type Field = readonly [name: string, value: string | number | boolean | null];

/** A sentence, the fields below it with their values aligned, and a last word where there is one. */
export function report(title: string, fields: readonly Field[], lastWord?: string): string {
  const width = Math.max(...fields.map(([name]) => name.length));
  const lines = fields.map(([name, value]) => `  ${name.padEnd(width)}  ${value ?? "none"}`);
  return [title, "", ...lines, ...(lastWord === undefined ? [] : ["", lastWord])].join("\n");
}

/** Columns under a header; the first to the left, the others, which are figures, to the right. */
export function table(header: readonly string[], rows: readonly (readonly string[])[]): string {
  const all = [header, ...rows];
  const widths = header.map((_, column) => Math.max(...all.map((row) => row[column]?.length ?? 0)));
  const line = (row: readonly string[]) =>
    row
      .map((cell, column) =>
        column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[column] ?? 0),
      )
      .join("   ");
  return all.map((row) => `  ${line(row)}`.trimEnd()).join("\n");
}
