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
import type { Decision } from "../../../store/store.ts";
import type { Context } from "../../context.ts";
import { type NewSession, newAuthSession } from "../sign-in.ts";
import { attemptSignIn } from "../throttle.ts";
import { newToken } from "../tokens.ts";
import { takeAnswered } from "./challenges.ts";

/** Begins a sign-in by passkey: the browser lets its person choose one, so nobody has to be named. */
export function beginPasskeySignIn(ctx: Context, address: string): RequestOptions | Refusal {
  const party = relyingPartyOf(ctx.baseUrl);
  if (isRefusal(party)) return party;
  const challenge = newToken(ctx);
  ctx.passkeyChallenges.add(challenge, { kind: "address", id: address }, { kind: "signIn" }, ctx.now());
  return requestOptions(party.id, challenge, PASSKEY_TTL_MS);
}

export type PasskeySignInInput = Wire<typeof passkeySignInBody>;

/**
 * Signs the owner of a passkey in. Whatever is wrong is `not_authenticated` and does not say what, and counts as a failed
 * sign-in; too many of them are `rate_limit_exceeded`.
 */
export async function signInByPasskey(
  ctx: Context,
  input: PasskeySignInInput,
  address: string,
): Promise<NewSession | Refusal> {
  const party = relyingPartyOf(ctx.baseUrl);
  if (isRefusal(party)) return party;
  return attemptSignIn(ctx, `passkey ${input.response.id}`, address, () => signInAs(ctx, input, party));
}

async function signInAs(
  ctx: Context,
  { response, mode = "live" }: PasskeySignInInput,
  party: RelyingParty,
): Promise<NewSession | Refusal> {
  const answered = takeAnswered(ctx.passkeyChallenges, response.response.clientDataJSON, ctx.now());
  const passkey = await ctx.store.read((reader) => reader.passkeys.get(response.id));
  if (answered?.ceremony.kind !== "signIn" || !passkey) return notSignedIn();
  if (response.response.userHandle !== userHandleOf({ id: passkey.userId })) return notSignedIn();
  const verified = await ctx.passkeys.verifyAssertion(response, answered.challenge, party, passkey);
  if ("problem" in verified) return notSignedIn();
  const { counter } = verified;
  const token = newToken(ctx);
  return ctx.store.execute({
    scope: { organisationId: passkey.organisationId, mode },
    needs: { passkey: passkey.id, user: passkey.userId },
    decide({ passkey: kept, user, organisation }, now): Decision<NewSession> {
      // The passkey, or its owner, may have been removed meanwhile. Of two answers with one counter, one comes from a copy.
      if (!kept || !user || !counterRose(kept.counter, counter)) return { answer: notSignedIn() };
      const session = newAuthSession(token, user, mode, now);
      return {
        answer: { token, resource: authSessionResource(organisation, user, session) },
        change: {
          put: [
            { kind: "passkey", before: kept, row: { ...kept, counter, lastUsedAt: now } },
            { kind: "authSession", before: null, row: session },
          ],
        },
      };
    },
  });
}

const notSignedIn = (): Refusal =>
  refuse(
    "not_authenticated",
    "The passkey could not be verified, or is not registered here any more. Try again, or sign in with the password.",
  );
