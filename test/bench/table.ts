/**
 * One line of the table: what was measured, the result, the aim and whether it is met. The last two are empty
 * where there is no aim.
 */
export type Row = {
  readonly what: string;
  readonly measured: string;
  readonly aim: string;
  readonly verdict: "met" | "short of the aim" | "MISSED" | "";
};

/** The limit that a figure must meet, and a stricter one that it should meet. */
type Limit = { readonly required: number; readonly aimed?: number };

const HEADS = { what: "What", measured: "Measured", aim: "Aim", verdict: "" };

export const atMost = (what: string, figure: number, limit: Limit, unit: string, comment = ""): Row =>
  judged(what, figure, limit, unit, comment, "≤", (bound) => figure <= bound);

export const atLeast = (what: string, figure: number, limit: Limit, comment = ""): Row =>
  judged(what, figure, limit, "", comment, "≥", (bound) => figure >= bound);

/** A line for a figure without an aim. */
export const noted = (what: string, measured: string): Row => ({ what, measured, aim: "", verdict: "" });

/** Lines with a heading. */
export const under = (heading: string, rows: readonly Row[]): Row[] => [
  noted(heading, ""),
  ...rows.map((row) => ({ ...row, what: `  ${row.what}` })),
];

function judged(
  what: string,
  figure: number,
  { required, aimed = required }: Limit,
  unit: string,
  comment: string,
  sign: string,
  keeps: (bound: number) => boolean,
): Row {
  const further = aimed === required ? "" : `, better ${shown(aimed)}${unit}`;
  return {
    what,
    measured: `${shown(figure)}${unit}${comment === "" ? "" : ` (${comment})`}`,
    aim: `${sign} ${shown(required)}${unit}${further}`,
    verdict: keeps(aimed) ? "met" : keeps(required) ? "short of the aim" : "MISSED",
  };
}

/** A figure with three significant digits; a large one with all of its digits. */
const shown = (figure: number): string =>
  figure >= 100 ? Math.round(figure).toLocaleString("en") : String(Number(figure.toPrecision(3)));

export function tableOf(rows: readonly Row[]): string {
  const widthOf = (column: keyof Row) => Math.max(...[HEADS, ...rows].map((row) => row[column].length));
  const widths = { what: widthOf("what"), measured: widthOf("measured"), aim: widthOf("aim") };
  return [HEADS, ...rows]
    .map(({ what, measured, aim, verdict }) =>
      [what.padEnd(widths.what), measured.padEnd(widths.measured), aim.padEnd(widths.aim), verdict]
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}
