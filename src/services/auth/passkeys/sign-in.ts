import type { Client } from "../../../core/client.ts";
import { isRefusal, type Refusal, refuse } from "../../../core/errors.ts";
import type { Wire } from "../../../core/form.ts";
import {
  counterRose,
  PASSKEY_TTL_MS,
  type RelyingParty,
  relyingPartyOf,
  userHandleOf,
} from "../../../core/passkey.ts";
import { authSessionResource } from "../../../resources/auth-session.ts";
import { type passkeySignInBody, type RequestOptions, requestOptions } from "../../../resources/passkey.ts";
import { type Audited, executeAudited } from "../../audited.ts";
import type { Context } from "../../context.ts";
import { newSignInNotice } from "../../notices/personal.ts";
import { attemptSignIn } from "../attempt.ts";
import { type NewSession, newAuthSession, signedInEntry } from "../sign-in.ts";
import { newToken } from "../tokens.ts";
import { takeAnswered } from "./challenges.ts";

/** Begins a sign-in by passkey. The request names no person: the browser lets its user choose a passkey. */
export function beginPasskeySignIn(ctx: Context, address: string): RequestOptions | Refusal {
  const party = relyingPartyOf(ctx.baseUrl);
  if (isRefusal(party)) return party;
  const challenge = ctx.passkeyChallenges.forSignIn(newToken(ctx), address, ctx.now());
  return requestOptions(party.id, challenge, PASSKEY_TTL_MS);
}

export type PasskeySignInInput = Wire<typeof passkeySignInBody>;

/**
 * Signs in the owner of a passkey. Every failure is `not_authenticated`, without a reason, and counts as a
 * failed sign-in; after too many the refusal is `rate_limit_exceeded`.
 */
export async function signInByPasskey(
  ctx: Context,
  input: PasskeySignInInput,
  client: Client,
): Promise<NewSession | Refusal> {
  const party = relyingPartyOf(ctx.baseUrl);
  if (isRefusal(party)) return party;
  const { user, isNewPlace } = await ctx.store.read(async ({ authSessions, passkeys, users }) => {
    const passkey = await passkeys.get(input.response.id);
    const owner = passkey && (await users.get(passkey.userId));
    return { user: owner, isNewPlace: owner && !(await authSessions.hasBeenFrom(owner.id, client.network)) };
  });
  // Nobody guesses a signature, so it has no account that could be held up.
  const attempt = { by: "passkey", client, account: null, trusted: false, user } as const;
  return attemptSignIn(ctx, attempt, () => signInAs(ctx, input, party, client, isNewPlace === true));
}

async function signInAs(
  ctx: Context,
  { response, mode = "live" }: PasskeySignInInput,
  party: RelyingParty,
  client: Client,
  isNewPlace: boolean,
): Promise<NewSession | Refusal> {
  const answered = await takeAnswered(ctx.passkeyChallenges, response.response.clientDataJSON, ctx.now());
  if (isRefusal(answered)) return answered;
  const passkey = await ctx.store.read((reader) => reader.passkeys.get(response.id));
  if (answered?.ceremony.kind !== "signIn" || !passkey) return notSignedIn();
  if (response.response.userHandle !== userHandleOf({ id: passkey.userId })) return notSignedIn();
  const verified = await ctx.passkeys.verifyAssertion(response, answered.challenge, party, passkey);
  if ("problem" in verified) return notSignedIn();
  const isFirst = await ctx.passkeyChallenges.useForSignIn(answered.challenge);
  if (isFirst !== true) return isRefusal(isFirst) ? isFirst : notSignedIn();
  const { counter } = verified;
  const token = newToken(ctx);
  const tellOwner = newSignInNotice(ctx, isNewPlace);
  const actor = { kind: "user", id: passkey.userId } as const;
  return executeAudited(ctx, actor, {
    scope: { organisationId: passkey.organisationId, mode },
    needs: { passkey: passkey.id, user: passkey.userId },
    decide({ passkey: kept, user, organisation }, now): Audited<NewSession> {
      // The passkey or its owner may have been removed meanwhile. And a counter that has not risen since
      // shows that the authenticator was copied.
      if (!kept || !user || !counterRose(kept.counter, counter)) return { answer: notSignedIn() };
      const session = { ...newAuthSession(token, user, mode, client, now), passkeyProved: true };
      const resource = authSessionResource(organisation, user, session, [kept]);
      return {
        answer: { token, resource, session },
        put: [
          { kind: "passkey", before: kept, row: { ...kept, counter, lastUsedAt: now } },
          { kind: "authSession", before: null, row: session },
          ...tellOwner(user, session),
        ],
        entries: [signedInEntry(session, "passkey")],
      };
    },
  });
}

const notSignedIn = (): Refusal =>
  refuse(
    "not_authenticated",
    "The passkey could not be verified, or is not registered here any more. Try again, or sign in with the password.",
  );
