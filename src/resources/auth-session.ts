import { Type } from "@sinclair/typebox";
import { type AuthSession, owesPasskey } from "../core/auth-session.ts";
import { form, is, object, oneOf, orNull, text, time, type Wire } from "../core/form.ts";
import type { Organisation } from "../core/organisation.ts";
import type { Passkey } from "../core/passkey.ts";
import { MODES, ROLES } from "../core/roles.ts";
import { isoTime } from "../core/time.ts";
import type { User } from "../core/user.ts";
import { closed, literals, password, plainText } from "./input.ts";

/** A sign-in as its person sees it. */

/** What a sign-in owes before anything else is allowed: to prove a passkey, or to register the first one. */
const OWED = ["passkey", "first_passkey"] as const;

export const authSessionForm = form("AuthSession", () =>
  object({
    object: is("auth_session"),
    user: object({ id: text, email: text, name: text, role: oneOf(ROLES) }),
    organisation: object({ id: text, name: text }),
    mode: oneOf(MODES),
    expires_at: time,
    second_factor_owed: orNull(oneOf(OWED)),
  }),
);

export const authSessionResource = (
  organisation: Organisation,
  user: User,
  session: AuthSession,
  passkeys: readonly Passkey[],
): Wire<typeof authSessionForm> => ({
  object: "auth_session",
  user: { id: user.id, email: user.email, name: user.name, role: user.role },
  organisation: { id: organisation.id, name: organisation.name },
  mode: session.mode,
  expires_at: isoTime(session.expiresAt),
  second_factor_owed: owedBy(owesPasskey(organisation, user.role, session), passkeys),
});

function owedBy(owes: boolean, passkeys: readonly Passkey[]): (typeof OWED)[number] | null {
  if (!owes) return null;
  return passkeys.length === 0 ? "first_passkey" : "passkey";
}

export const signInBody = Type.Object(
  {
    email: plainText({ lengthMin: 1, lengthMax: 254, description: "an e-mail address" }),
    password,
    mode: Type.Optional(literals(MODES)),
  },
  closed,
);
