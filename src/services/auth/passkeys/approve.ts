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
import { ACCESS, type Caller } from "../../../core/roles.ts";
import { isoTime } from "../../../core/time.ts";
import type { AssertionResponse } from "../../../platform/passkeys.ts";
import type { Context } from "../../context.ts";
import { credentialOf, refuseEndedCaller } from "../../intent.ts";
import { refuseOtherVersion, warrantNotFound } from "../../warrants/transition.ts";
import { personOf } from "../person.ts";
import { newToken } from "../tokens.ts";
import { takeAnswered } from "./challenges.ts";
import { challengeGone, passkeyNotFound, type RequestOptions, requestOptions } from "./resources.ts";
import { countingOf } from "./use-approval.ts";

/** What is about to be decided, and on which version of the warrant. */
export type DecisionInput = {
  readonly warrantId: string;
  readonly version: number;
  readonly decision: Settlement;
  readonly releasedBps: number | null;
};

/**
 * Asks for a person's signature over one decision: the challenge is the hash of who, which warrant, its version, the
 * decision and the share. `passkey_unavailable` where the person has no passkey that counts.
 */
export function challengeDecision(
  ctx: Context,
  caller: Caller,
  input: DecisionInput,
): RequestOptions | Refusal {
  const user = personOf(ctx, caller, ACCESS.settleWarrant);
  if (isRefusal(user)) return user;
  if ((input.decision === "partial_release") !== (input.releasedBps !== null)) {
    return refuseField("released_bps", "goes with the decision partial_release, and is required there");
  }
  const warrant = ctx.store.reader.warrants.get(caller, input.warrantId);
  if (!warrant) return warrantNotFound();
  const other = refuseOtherVersion(warrant, input.version);
  if (other) return other;
  const party = relyingPartyOf(ctx.baseUrl);
  if (isRefusal(party)) return party;
  const passkeys = countingOf(ctx.store.reader.passkeys.of(user.id));
  if (passkeys.length === 0) return noPasskey();
  const signed: SignedDecision = { userId: user.id, ...input };
  const statement = statementOf(signed, newToken(ctx));
  const challenge = challengeOf(statement);
  const asker = { kind: "person", id: user.id } as const;
  ctx.passkeyChallenges.add(challenge, asker, { kind: "decision", signed, statement }, ctx.now());
  return requestOptions(party.id, challenge, PASSKEY_TTL_MS, passkeys);
}

export type Approval = {
  readonly object: "passkey_approval";
  /** Goes into `Service-Passkey` of that one decision. Shown once; only its hash is kept. */
  readonly token: string;
  readonly expires_at: string;
};

/** Turns the signature into a token for that one decision, once, within 120 s. */
export async function approveDecision(
  ctx: Context,
  caller: Caller,
  { response }: { readonly response: AssertionResponse },
): Promise<Approval | Refusal> {
  const user = personOf(ctx, caller, ACCESS.settleWarrant);
  if (isRefusal(user)) return user;
  const party = relyingPartyOf(ctx.baseUrl);
  if (isRefusal(party)) return party;
  const answered = takeAnswered(ctx.passkeyChallenges, response.response.clientDataJSON, ctx.now());
  if (answered?.ceremony.kind !== "decision") return challengeGone();
  const { challenge, ceremony } = answered;
  const { signed, statement } = ceremony;
  if (signed.userId !== user.id) return challengeGone();
  const passkey = ctx.store.reader.passkeys.get(response.id);
  if (passkey?.userId !== user.id || !passkey.countsForThreshold) return passkeyNotFound();
  const verified = await ctx.passkeys.verifyAssertion(response, challenge, party, passkey);
  if ("problem" in verified) return refuseField("response", verified.problem);
  const { counter } = verified;
  const token = newToken(ctx);
  // Verifying takes its time: the sign-in may have ended meanwhile.
  const now = ctx.now();
  const approval: PasskeyApproval = {
    tokenHash: hashSecret(token),
    ...signed,
    passkeyId: passkey.id,
    assertion: canonicalJson({
      statement,
      credential_id: passkey.id,
      public_key: passkey.publicKey,
      client_data_json: response.response.clientDataJSON,
      authenticator_data: response.response.authenticatorData,
      signature: response.response.signature,
    }),
    createdAt: now,
    expiresAt: now + PASSKEY_TTL_MS,
    usedAt: null,
  };
  return ctx.store.execute<Approval>({
    scope: caller,
    needs: { ...credentialOf(caller), passkeyId: passkey.id },
    decide: (snapshot) => {
      const ended = refuseEndedCaller(caller, ACCESS.settleWarrant, snapshot, now);
      if (ended) return { answer: ended };
      const { passkey: kept } = snapshot;
      if (!kept?.countsForThreshold) return { answer: passkeyNotFound() };
      if (!counterRose(kept.counter, counter)) {
        return {
          answer: refuseField("response", "its signature counter did not rise: a copy may be in use"),
        };
      }
      return {
        answer: { object: "passkey_approval", token, expires_at: isoTime(approval.expiresAt) },
        change: {
          rows: [
            { kind: "passkey", row: { ...kept, counter, lastUsedAt: now } },
            { kind: "passkeyApproval", row: approval },
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
