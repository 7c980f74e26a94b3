import { hashSecret } from "../../../core/api-key.ts";
import { canonicalJson } from "../../../core/canonical.ts";
import { isRefusal, type Refusal, refuse, refuseField } from "../../../core/errors.ts";
import type { PasskeyApproval } from "../../../core/passkey.ts";
import {
  challengeOf,
  counterRose,
  PASSKEY_TTL_MS,
  relyingPartyOf,
  type Settlement,
  type SignedDecision,
  statementOf,
} from "../../../core/passkey.ts";
import { ACCESS, type Access, type Caller } from "../../../core/roles.ts";
import { refuseOtherVersion, warrantNotFound } from "../../../core/warrant.ts";
import type { AssertionResponse } from "../../../platform/passkeys.ts";
import {
  type Approval,
  approvalResource,
  type RequestOptions,
  requestOptions,
} from "../../../resources/passkey.ts";
import type { Reader } from "../../../store/reader.ts";
import type { Decision } from "../../../store/store.ts";
import { callerNow, credentialOf } from "../../caller-now.ts";
import type { Context } from "../../context.ts";
import { personOf } from "../person.ts";
import { newToken } from "../tokens.ts";
import { takeAnswered } from "./challenges.ts";
import { challengeGone, passkeyNotFound } from "./refusals.ts";
import { countingOf } from "./use-approval.ts";

/** The decision to sign, and the version of the warrant that it is for. */
export type DecisionInput = {
  readonly warrantId: string;
  readonly version: number;
  readonly decision: Settlement;
  readonly releasedBps: number | null;
};

/**
 * Asks for a person's signature over one decision. The challenge is a hash over the person, the warrant and
 * its version, the decision and the share. Refused with `passkey_unavailable` where the person has no passkey
 * that counts.
 */
export const challengeDecision = (
  ctx: Context,
  caller: Caller,
  { warrantId, version, decision, releasedBps }: DecisionInput,
): Promise<RequestOptions | Refusal> =>
  challengeFor(ctx, caller, ACCESS.settleWarrant, async (reader, userId) => {
    if ((decision === "partial_release") !== (releasedBps !== null)) {
      return refuseField("released_bps", "goes with the decision partial_release, and is required there");
    }
    const warrant = await reader.warrants.get(caller, warrantId);
    if (!warrant) return warrantNotFound();
    const other = refuseOtherVersion(warrant, version);
    return other ?? { userId, subject: warrantId, version, decision, releasedBps };
  });

/**
 * Asks for a person's signature. Refused with `passkey_unavailable` where they have no passkey that counts.
 *
 * @param find what is to be signed, where it is possible now
 */
export async function challengeFor(
  ctx: Context,
  caller: Caller,
  access: Access,
  find: (reader: Reader, userId: string) => Promise<SignedDecision | Refusal>,
): Promise<RequestOptions | Refusal> {
  const found = await ctx.store.read(async (reader) => {
    const user = await personOf(reader, caller, access);
    if (isRefusal(user)) return user;
    const signed = await find(reader, user.id);
    return isRefusal(signed) ? signed : { signed, passkeys: countingOf(await reader.passkeys.of(user.id)) };
  });
  if (isRefusal(found)) return found;
  const party = relyingPartyOf(ctx.baseUrl);
  if (isRefusal(party)) return party;
  const { signed, passkeys } = found;
  if (passkeys.length === 0) return noPasskey();
  const statement = statementOf(signed, newToken(ctx));
  const challenge = challengeOf(statement);
  const asker = { kind: "person", id: signed.userId } as const;
  const ceremony = { kind: "decision", signed, statement } as const;
  const unshared = await ctx.passkeyChallenges.add(challenge, asker, ceremony, ctx.now());
  if (unshared) return unshared;
  return requestOptions(party.id, challenge, PASSKEY_TTL_MS, passkeys);
}

/** Exchanges the signature for a token, which is good for this one decision, once, within 120 s. */
export async function approveDecision(
  ctx: Context,
  caller: Caller,
  { response }: { readonly response: AssertionResponse },
): Promise<Approval | Refusal> {
  const found = await ctx.store.read(async (reader) => {
    const user = await personOf(reader, caller, ACCESS.settleWarrant);
    return isRefusal(user) ? user : { user, passkey: await reader.passkeys.get(response.id) };
  });
  if (isRefusal(found)) return found;
  const { user, passkey } = found;
  const party = relyingPartyOf(ctx.baseUrl);
  if (isRefusal(party)) return party;
  const answered = await takeAnswered(ctx.passkeyChallenges, response.response.clientDataJSON, ctx.now());
  if (isRefusal(answered)) return answered;
  if (answered?.ceremony.kind !== "decision") return challengeGone();
  const { challenge, ceremony } = answered;
  const { signed, statement } = ceremony;
  if (signed.userId !== user.id) return challengeGone();
  if (passkey?.userId !== user.id || !passkey.countsForThreshold) return passkeyNotFound();
  const verified = await ctx.passkeys.verifyAssertion(response, challenge, party, passkey);
  if ("problem" in verified) return refuseField("response", verified.problem);
  const assertion = canonicalJson({
    statement,
    credential_id: passkey.id,
    public_key: passkey.publicKey,
    client_data_json: response.response.clientDataJSON,
    authenticator_data: response.response.authenticatorData,
    signature: response.response.signature,
  });
  return keep(ctx, caller, { ...signed, passkeyId: passkey.id, assertion }, verified.counter);
}

/** The parts of an approval that come from the signature. */
type Signature = SignedDecision & Pick<PasskeyApproval, "passkeyId" | "assertion">;

/** Stores a signature as an approval, together with the authenticator's new counter. */
function keep(
  ctx: Context,
  caller: Caller,
  signature: Signature,
  counter: number,
): Promise<Approval | Refusal> {
  const token = newToken(ctx);
  return ctx.store.execute({
    scope: caller,
    needs: { ...credentialOf(caller), passkey: signature.passkeyId },
    decide(snapshot, now): Decision<Approval> {
      // Verifying takes time: the sign-in may have ended meanwhile, and the passkey may have been removed or used.
      const present = callerNow(caller, ACCESS.settleWarrant, snapshot, now);
      if (isRefusal(present)) return { answer: present };
      const { passkey } = snapshot;
      if (!passkey?.countsForThreshold) return { answer: passkeyNotFound() };
      if (!counterRose(passkey.counter, counter)) {
        return {
          answer: refuseField("response", "its signature counter did not rise: a copy may be in use"),
        };
      }
      const expiresAt = now + PASSKEY_TTL_MS;
      const approval: PasskeyApproval = {
        tokenHash: hashSecret(token),
        ...signature,
        createdAt: now,
        expiresAt,
        usedAt: null,
      };
      return {
        answer: approvalResource(token, expiresAt),
        change: {
          put: [
            { kind: "passkey", before: passkey, row: { ...passkey, counter, lastUsedAt: now } },
            { kind: "passkeyApproval", before: null, row: approval },
          ],
        },
      };
    },
  });
}

const noPasskey = (): Refusal =>
  refuse(
    "passkey_unavailable",
    "You have no passkey that counts for the threshold. Register one at /account; one that was enrolled within 24 hours of a password reset does not count.",
  );
