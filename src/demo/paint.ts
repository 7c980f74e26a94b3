/** Colours and marks; without colour the text alone must do. */
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
  const style = (code: string) => (text: string) => (colour ? `\u001b[${code}m${text}\u001b[0m` : text);
  const good = style("32");
  const bad = style("31");
  return {
    bold: style("1"),
    quiet: style("2"),
    good,
    bad,
    waiting: style("33"),
    sandbox: (text) => (colour ? style("30;43")(` ${text} `) : `${text}:`),
    pass: good("✓"),
    fail: bad("✗"),
  };
}
