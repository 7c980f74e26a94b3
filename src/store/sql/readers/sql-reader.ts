import type { Reader } from "../../reader.ts";

/** The reads of the seam, as SQLite answers them: without a promise. */
type AtOnce<Reads> = Reads extends (...asked: infer Asked) => Promise<infer Answer>
  ? (...asked: Asked) => Answer
  : { readonly [Name in keyof Reads]: AtOnce<Reads[Name]> };
export type SqlReader = AtOnce<Reader>;
