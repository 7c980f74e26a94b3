import { styleText } from "node:util";

/** Colours and marks of the demo. Without colour the words alone say everything. */
export type Paint = {
  bold(text: string): string;
  quiet(text: string): string;
  good(text: string): string;
  bad(text: string): string;
  waiting(text: string): string;
  sandbox(text: string): string;
  readonly pass: string;
  readonly fail: string;
};

/** Where the tour is printed, and in which colours. */
export type Output = { readonly paint: Paint; readonly print: (text: string) => void };

export function createPaint(colour: boolean): Paint {
  const style = (format: Parameters<typeof styleText>[0]) => (text: string) =>
    colour ? styleText(format, text, { validateStream: false }) : text;
  const good = style("green");
  const bad = style("red");
  return {
    bold: style("bold"),
    quiet: style("dim"),
    good,
    bad,
    waiting: style("yellow"),
    sandbox: (text) => (colour ? style(["black", "bgYellow"])(` ${text} `) : `${text}:`),
    pass: good("✓"),
    fail: bad("✗"),
  };
}
