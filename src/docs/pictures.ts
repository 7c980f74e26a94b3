import escalation from "./pictures/escalation.png" with { type: "file" };
import overview from "./pictures/overview.png" with { type: "file" };
import receipt from "./pictures/receipt.png" with { type: "file" };

/** The pictures that pages show, by their path: the PNG's bytes, from the executable. */
export const PICTURES: Readonly<Record<string, () => Promise<Uint8Array>>> = Object.fromEntries(
  Object.entries({ escalation, overview, receipt }).map(([name, file]) => [
    `/docs/pictures/${name}.png`,
    () => Bun.file(file).bytes(),
  ]),
);
