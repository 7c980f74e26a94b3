import type { ClauseKind } from "./clauses/registry.ts";

/** A saved clause: `config` is its fields apart from `kind`. */
export type SavedVerifier = {
  readonly id: string;
  readonly organisationId: string;
  readonly type: ClauseKind;
  readonly name: string;
  readonly config: Readonly<Record<string, unknown>>;
  readonly createdAt: number;
};
