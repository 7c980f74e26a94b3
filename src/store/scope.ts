import type { Mode } from "../core/roles.ts";

/** The organisation and the mode that a command or a read is of. */
export type Scope = { readonly organisationId: string; readonly mode: Mode };
