import type { ClauseKind } from "./clauses/registry.ts";
import type { JsonSchema } from "./clauses/schema.ts";
import type { Mode, Role } from "./roles.ts";

/** What an organisation keeps besides its money: its people, their sign-ins, its agents' keys, verifiers and schemas. */
export type Organisation = { readonly id: string; readonly name: string; readonly createdAt: number };

export type User = {
  readonly id: string;
  readonly organisationId: string;
  /** Lower case; unique in the instance. */
  readonly email: string;
  readonly name: string;
  readonly role: Role;
  readonly passwordHash: string;
  readonly createdAt: number;
};

/** A person's sign-in; only a hash of the cookie's token is kept. */
export type AuthSession = {
  readonly tokenHash: string;
  readonly userId: string;
  readonly mode: Mode;
  readonly createdAt: number;
  readonly expiresAt: number;
};

/** An agent's credential; only a hash of the secret is kept. */
export type ApiKey = {
  readonly id: string;
  readonly organisationId: string;
  readonly agentId: string;
  readonly mode: Mode;
  readonly secretHash: string;
  readonly lastFour: string;
  readonly createdAt: number;
  readonly revokedAt: number | null;
};

/** A saved clause: `config` is its fields apart from `kind`. */
export type SavedVerifier = {
  readonly id: string;
  readonly organisationId: string;
  readonly type: ClauseKind;
  readonly name: string;
  readonly config: Readonly<Record<string, unknown>>;
  readonly createdAt: number;
};

/** A JSON Schema that clauses name. Immutable once saved, so a name pins its hash. */
export type NamedSchema = {
  readonly id: string;
  readonly organisationId: string;
  readonly name: string;
  readonly schema: JsonSchema;
  readonly schemaHash: string;
  readonly createdAt: number;
};

/** Money that came in, as an admin recorded it. */
export type Deposit = {
  readonly id: string;
  readonly organisationId: string;
  readonly mode: Mode;
  readonly asset: string;
  readonly amount: bigint;
  readonly reference: string | null;
  readonly createdAt: number;
};
