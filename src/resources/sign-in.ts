import { type AuthSession, signInIdOf } from "../core/auth-session.ts";
import { arrayOf, boolean, form, is, object, oneOf, orNull, text, time, type Wire } from "../core/form.ts";
import { MODES } from "../core/roles.ts";
import { isoTime } from "../core/time.ts";
import { listForm } from "./list.ts";

/** A sign-in among those of its person: where it was made, by which program, and until when it counts. */

const signInForm = form("SignIn", () =>
  object({
    id: text,
    object: is("sign_in"),
    user_id: text,
    mode: oneOf(MODES),
    address: orNull(text),
    agent: orNull(text),
    current: boolean,
    created_at: time,
    last_used_at: time,
    expires_at: time,
  }),
);

/** @param current the hash of the sign-in that asks; null where none does */
export const signInResource = (session: AuthSession, current: string | null): Wire<typeof signInForm> => ({
  id: signInIdOf(session),
  object: "sign_in",
  user_id: session.userId,
  mode: session.mode,
  address: session.network,
  agent: session.agent,
  current: session.tokenHash === current,
  created_at: isoTime(session.createdAt),
  last_used_at: isoTime(session.lastUsedAt ?? session.createdAt),
  expires_at: isoTime(session.expiresAt),
});

export const signInsEndedForm = form("SignInsEnded", () =>
  object({ object: is("sign_ins_ended"), user_id: text, sign_ins: arrayOf(text) }),
);

/** What the end of somebody's sign-ins answers: the ids of those that ended, a hundred at most. */
export type SignInsEnded = Wire<typeof signInsEndedForm>;

export type SignInResource = ReturnType<typeof signInResource>;

export const signInListForm = form("SignInList", () => listForm(signInForm(), {}));
