/**
 * Whether whoever sent this `Accept` header (RFC 9110, section 12.5.1) wants a page rather than JSON: it names `text/html`, and
 * values it no less. A program that names nothing, or everything, gets JSON.
 */
export function prefersHtml(accept: string | null): boolean {
  const ranges = (accept ?? "").toLowerCase().split(",").map(rangeOf);
  const qualityOf = (...names: readonly string[]): number =>
    names
      .map((name) => ranges.find((range) => range.name === name)?.quality)
      .find((one) => one !== undefined) ?? 0;
  const html = qualityOf("text/html");
  return html > 0 && html >= qualityOf("application/json", "application/*", "*/*");
}

function rangeOf(text: string): { readonly name: string; readonly quality: number } {
  const [name = "", ...parameters] = text.split(";").map((part) => part.trim());
  const [, digits = "1"] = /^q=(0(?:\.\d{0,3})?|1(?:\.0{0,3})?)$/.exec(parameters.at(-1) ?? "") ?? [];
  return { name, quality: Number(digits) };
}
