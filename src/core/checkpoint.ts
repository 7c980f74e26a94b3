import { fromBase64, toBase64 } from "./signed-note.ts";

/** What a log says of itself at a size: the text of a signed note (C2SP, tlog-checkpoint). */
export type Checkpoint = {
  /** Which log it is. */
  readonly origin: string;
  /** How many leaves the tree has. */
  readonly size: number;
  /** The root of the tree: 32 bytes (RFC 6962). */
  readonly root: Uint8Array;
  /** Lines after these. They mean nothing here, but they are signed, so they are kept. Holdfast's own log has none. */
  readonly extensions: readonly string[];
};

const ROOT_BYTES = 32;

export const formatCheckpoint = ({ origin, size, root, extensions }: Checkpoint): string =>
  [origin, size, toBase64(root), ...extensions, ""].join("\n");

/** The checkpoint that a note's text is; null for every other text. */
export function parseCheckpoint(text: string): Checkpoint | null {
  const lines = text.split("\n");
  const [origin = "", digits = "", encoded = "", ...extensions] = lines.slice(0, -1);
  const size = parseTreeSize(digits);
  const root = fromBase64(encoded);
  const isWhole = lines.at(-1) === "" && origin !== "" && !extensions.includes("");
  return isWhole && size !== null && root?.length === ROOT_BYTES ? { origin, size, root, extensions } : null;
}

/** The size that decimal digits without leading zeroes stand for; null for every other text. */
export function parseTreeSize(digits: string): number | null {
  const size = /^(0|[1-9][0-9]{0,15})$/.test(digits) ? Number(digits) : Number.NaN;
  return Number.isSafeInteger(size) ? size : null;
}
