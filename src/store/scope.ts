import type { Mode } from "../core/roles.ts";

/** A part of a list: at most so many rows, from the one after that row on; null for the first ones. */
export type Part = { readonly after: string | null; readonly limit: number };

/** The organisation and mode of a command or a read. */
export type Scope = { readonly organisationId: string; readonly mode: Mode };
