import type { ClauseKind } from "./clauses/registry.ts";
import type { JsonSchema } from "./clauses/schema.ts";
import type { Decision } from "./records.ts";
import type { Mode, Role } from "./roles.ts";

/** What an organisation keeps besides its money: its people, their sign-ins, its agents' keys, verifiers and schemas. */
export type Organisation = {
  readonly id: string;
  readonly name: string;
  /** While on, no warrant opens; what is open goes on (interface.md, Authentication, rule 7). */
  readonly killSwitch: boolean;
  /** Units of USDC above which a person signs with a passkey; null is off (decisions.md, Sign-in, roles, passkeys). */
  readonly passkeyThreshold: bigint | null;
  readonly createdAt: number;
};

export type User = {
  readonly id: string;
  readonly organisationId: string;
  /** Lower case; unique in the instance. */
  readonly email: string;
  readonly name: string;
  readonly role: Role;
  readonly passwordHash: string;
  /** When a one-time link last replaced the password: a passkey enrolled soon after it is not trusted with the threshold. */
  readonly passwordResetAt: number | null;
  /** Somebody who was removed signs in no more; what they did keeps their id. */
  readonly removedAt: number | null;
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

/** A one-time link that lets a person choose a new password; only a hash of its token is kept. */
export type PasswordReset = {
  readonly tokenHash: string;
  readonly userId: string;
  readonly createdAt: number;
  readonly expiresAt: number;
  readonly usedAt: number | null;
};

/** A person's WebAuthn credential. */
export type Passkey = {
  /** The authenticator's own id of it, base64url. */
  readonly id: string;
  readonly organisationId: string;
  readonly userId: string;
  readonly name: string;
  /** COSE key, base64url. */
  readonly publicKey: string;
  /** The authenticator's signature counter; 0 where it keeps none. */
  readonly counter: number;
  readonly transports: readonly string[];
  /** Not so where it was enrolled within 24 h of a password reset (decisions.md, Sign-in, roles, passkeys). */
  readonly countsForThreshold: boolean;
  readonly createdAt: number;
  readonly lastUsedAt: number | null;
};

/** A person's signature over one decision on one version of a warrant: good for one use, soon. */
export type PasskeyApproval = {
  readonly tokenHash: string;
  readonly userId: string;
  readonly passkeyId: string;
  readonly warrantId: string;
  readonly version: number;
  readonly decision: Decision;
  readonly releasedBps: number | null;
  /** The WebAuthn assertion as JSON: what was signed can be checked again. */
  readonly assertion: string;
  readonly createdAt: number;
  readonly expiresAt: number;
  readonly usedAt: number | null;
};

/** What the audit log records: noun and verb. */
export const ADMIN_ACTIONS = [
  "organisation.created",
  "user.created",
  "user.role_changed",
  "user.removed",
  "user.password_changed",
  "user.password_reset_issued",
  "user.password_reset",
  "user.signed_out_everywhere",
  "passkey.registered",
  "passkey.removed",
  "passkeys.reset",
  "agent.created",
  "agent.status_changed",
  "api_key.created",
  "api_key.rotated",
  "api_key.revoked",
  "spend_session.created",
  "spend_session.revoked",
  "policy.created",
  "verifier.created",
  "schema.created",
  "balance.funded",
  "purchase.resolved",
  "webhook.created",
  "webhook.disabled",
  "delivery.redelivered",
  "webhook.recovered",
  "webhook.example_sent",
  "kill_switch.changed",
  "passkey_threshold.changed",
] as const;
export type AdminAction = (typeof ADMIN_ACTIONS)[number];

/** Who did an administrative act: a signed-in person, or whoever works on the machine itself. */
export type Administrator =
  | { readonly kind: "user"; readonly id: string }
  | { readonly kind: "machine"; readonly id: null };

/** One entry of the audit log: who did what to which thing, how it was before and is after. No secret is in it. */
export type AdminAct = {
  readonly id: string;
  readonly organisationId: string;
  readonly actor: Administrator;
  readonly action: AdminAction;
  /** The id of what was acted on. */
  readonly subject: string;
  /** Read-back shapes; null where there was, or is, nothing. */
  readonly before: object | null;
  readonly after: object | null;
  readonly recordedAt: number;
};

/** This installation: the ledger and its keys (decisions.md, Identifiers and Money in and out). */
export type Instance = {
  readonly id: string;
  /** Where its server was last reached: what commands write down leads there. Null before the first start. */
  readonly baseUrl: string | null;
  /** The EVM chains that its server last had endpoints of: where one of them was paid on, the chain tells, and no person. */
  readonly chainIds: readonly number[];
  readonly createdAt: number;
  /** When the ledger was restored from a backup; an old copy has forgotten keys and payments. */
  readonly restoredAt: number | null;
  /** Until somebody has acknowledged it, live opens and payments are refused. */
  readonly acknowledgedAt: number | null;
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
  /** When it ends by itself: set where a newer key replaces it. */
  readonly expiresAt: number | null;
  /** To ten seconds or so: a request does not wait for it to be written. */
  readonly lastUsedAt: number | null;
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
