import { endOf } from "../core/api-key.ts";
import { owesPasskey } from "../core/auth-session.ts";
import { type Refusal, refuse } from "../core/errors.ts";
import { type Access, type Caller, type ChatCaller, refuseAccess } from "../core/roles.ts";
import type { Snapshot } from "../store/needs.ts";

/**
 * The caller as they are at the commit. A credential may end while its request is under way: an API key is
 * revoked or expires; a person is signed out, removed or given another role. So every command of a caller
 * checks again.
 */

/**
 * The needs that load a caller's credential. The needs of the other kind of caller are null and find nothing.
 */
export type CredentialNeeds = {
  readonly callerKey: string | null;
  readonly callerAgent: string | null;
  readonly callerUser: string | null;
  readonly callerSession: string | null;
  readonly callerChat: string | null;
};

export function credentialOf(caller: Caller | ChatCaller): CredentialNeeds {
  switch (caller.kind) {
    case "key":
      return { ...NO_CREDENTIAL, callerKey: caller.keyId, callerAgent: caller.agentId };
    case "person":
      return { ...NO_CREDENTIAL, callerUser: caller.userId, callerSession: caller.signInHash };
    case "chat":
      return { ...NO_CREDENTIAL, callerUser: caller.userId, callerChat: caller.userId };
  }
}

/** Such as of the operator of the machine, who has none that could end. */
export const NO_CREDENTIAL: CredentialNeeds = {
  callerKey: null,
  callerAgent: null,
  callerUser: null,
  callerSession: null,
  callerChat: null,
};

type Credential = Snapshot<CredentialNeeds>;

/** The caller with their present role, or why they may not call any more. */
export function callerNow<Who extends Caller | ChatCaller>(
  caller: Who,
  access: Access,
  credential: Credential,
  now: number,
): Who | Refusal {
  const present = presentCaller(caller, credential, now);
  if ("refused" in present) return present;
  return refuseAccess(present, access) ?? (present as Who);
}

function presentCaller(
  caller: Caller | ChatCaller,
  credential: Credential,
  now: number,
): Caller | ChatCaller | Refusal {
  switch (caller.kind) {
    case "key":
      return presentKey(caller, credential, now);
    case "person":
      return presentPerson(caller, credential, now);
    case "chat":
      return presentInChat(caller, credential);
  }
}

function presentKey(caller: Caller, { callerKey }: Credential, now: number): Caller | Refusal {
  const end = callerKey ? endOf(callerKey, now) : "revoked";
  if (end === null) return caller;
  return refuse("not_authenticated", `The API key ${end === "revoked" ? "was revoked" : "has expired"}.`);
}

function presentPerson(
  caller: Extract<Caller, { kind: "person" }>,
  { callerUser, callerSession, organisation }: Credential,
  now: number,
): Caller | Refusal {
  return callerUser && callerSession && callerSession.expiresAt > now
    ? {
        ...caller,
        role: callerUser.role,
        owesPasskey: owesPasskey(organisation, callerUser.role, callerSession),
      }
    : refuse("not_authenticated", "You were signed out. Sign in again.");
}

/** No passkey is proved in a chat. */
function presentInChat(
  caller: ChatCaller,
  { callerUser, callerChat, organisation }: Credential,
): ChatCaller | Refusal {
  return callerUser && callerChat?.chatId === caller.chatId
    ? {
        ...caller,
        role: callerUser.role,
        owesPasskey: owesPasskey(organisation, callerUser.role, { passkeyProved: false }),
      }
    : refuse("not_authenticated", "This chat is not linked to you any more.");
}
