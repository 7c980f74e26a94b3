import type { Mode } from "../core/roles.ts";

/** The organisation and mode of a command or a read. */
export type Scope = { readonly organisationId: string; readonly mode: Mode };
