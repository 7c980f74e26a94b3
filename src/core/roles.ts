import { type Refusal, refuse } from "./errors.ts";

/**
 * The two modes. They share no agents, keys or money, since the sandbox's money is not real (docs/concepts,
 * "Sandbox and live").
 */
export const MODES = ["sandbox", "live"] as const;
export type Mode = (typeof MODES)[number];

/** Roles of people, lowest first (docs/people, "Roles"). */
export const ROLES = ["viewer", "operator", "admin", "owner"] as const;
export type Role = (typeof ROLES)[number];

/** An agent's API key; it acts in its agent's mode. */
export type KeyCaller = {
  readonly kind: "key";
  readonly keyId: string;
  readonly agentId: string;
  readonly organisationId: string;
  readonly mode: Mode;
};

/** A signed-in person. */
export type PersonCaller = {
  readonly kind: "person";
  readonly userId: string;
  readonly role: Role;
  readonly organisationId: string;
  readonly mode: Mode;
  /** Hash of the cookie's token. Each commit checks by it that this sign-in has not ended. */
  readonly signInHash: string;
  /** Whether they must prove a passkey before anything else. */
  readonly owesPasskey: boolean;
};

export type Caller = KeyCaller | PersonCaller;

/** A person who presses a button in the chat that they have linked. Nothing but a decision on an escalation is done there. */
export type ChatCaller = Omit<PersonCaller, "kind" | "signInHash"> & {
  readonly kind: "chat";
  /** Each commit checks by it that the chat is still theirs. */
  readonly chatId: string;
};

/**
 * Who may do a thing: a person from `role` up, and API keys where `keys` says so. A person who owes a passkey may do
 * only what says `whileOwing`.
 */
export type Access = { readonly role: Role; readonly keys: boolean; readonly whileOwing?: true };

/** What each verb asks of its caller (docs/people, "Roles"). */
export const ACCESS = {
  openWarrant: { role: "operator", keys: true },
  verifyWarrant: { role: "operator", keys: true },
  readWarrants: { role: "viewer", keys: true },
  settleWarrant: { role: "operator", keys: false },
  resolveEscalation: { role: "operator", keys: false },
  readConsole: { role: "viewer", keys: false },
  keepOwnSignIn: { role: "viewer", keys: false },
  /** To see one's sign-in, and to sign out. */
  endOwnSignIn: { role: "viewer", keys: false, whileOwing: true },
  /** A person who owes a passkey may register the first one only: the verb refuses another. */
  registerPasskey: { role: "viewer", keys: false, whileOwing: true },
  pauseAgent: { role: "operator", keys: false },
  administer: { role: "admin", keys: false },
  /** The passkey threshold and the second factor. */
  ownOrganisation: { role: "owner", keys: false },
} as const satisfies Record<string, Access>;

export const roleIsAtLeast = (role: Role, minimum: Role): boolean =>
  ROLES.indexOf(role) >= ROLES.indexOf(minimum);

/** Null where the caller has the access; else why not. */
export function refuseAccess(caller: Caller | ChatCaller, access: Access): Refusal | null {
  if (caller.kind === "key") {
    return access.keys
      ? null
      : refuse("user_session_required", "An API key cannot do this; a signed-in person can.");
  }
  if (caller.owesPasskey && !access.whileOwing) return refuseOwing();
  return roleIsAtLeast(caller.role, access.role)
    ? null
    : refuse("insufficient_role", `This needs the role ${access.role} or above; yours is ${caller.role}.`);
}

export const refuseOwing = (): Refusal =>
  refuse(
    "second_factor_required",
    "Your organisation asks you for a passkey beside the password. Sign in with your passkey at /account; if you have none yet, register one there. Until then only signing out is possible.",
  );

/** Who moved a warrant, as the trace records it. The id of an `agent` is that of its API key (docs/security, "Trace"). */
export const ACTOR_KINDS = ["agent", "user", "system"] as const;
export type Actor =
  | { readonly kind: Exclude<(typeof ACTOR_KINDS)[number], "system">; readonly id: string }
  | { readonly kind: "system"; readonly id: null };

export const SYSTEM: Actor = { kind: "system", id: null };

export const actorOf = (caller: Caller | ChatCaller): Actor =>
  caller.kind === "key" ? { kind: "agent", id: caller.keyId } : { kind: "user", id: caller.userId };
