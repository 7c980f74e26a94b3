import type { Client } from "../../../core/client.ts";
import { isRefusal, type Refusal, refuse, refuseField } from "../../../core/errors.ts";
import type { Wire } from "../../../core/form.ts";
import type { Passkey } from "../../../core/passkey.ts";
import { countsForThreshold, PASSKEY_TTL_MS, relyingPartyOf } from "../../../core/passkey.ts";
import { ACCESS, type Caller, refuseOwing } from "../../../core/roles.ts";
import {
  type CreationOptions,
  creationOptions,
  type passkeyBody,
  passkeyResource,
} from "../../../resources/passkey.ts";
import { type Audited, executeAudited } from "../../audited.ts";
import { callerNow, credentialOf } from "../../caller-now.ts";
import type { Context } from "../../context.ts";
import { refuseText } from "../../fields.ts";
import { confirmPassword } from "../confirm-password.ts";
import { personOf } from "../person.ts";
import { newToken } from "../tokens.ts";
import { takeAnswered } from "./challenges.ts";
import { challengeGone } from "./refusals.ts";

/** How many passkeys a person may have: a browser gets the list of all of them. */
const PASSKEYS_MAX = 32;

/**
 * Begins the registration of a passkey. The password is asked for again, so that a stolen cookie enrols nothing. Answers
 * `PublicKeyCredentialCreationOptionsJSON`; where the base URL allows no passkeys, `passkey_unavailable`.
 */
export async function beginRegistration(
  ctx: Context,
  caller: Caller,
  input: { readonly password: string },
  client: Client,
): Promise<CreationOptions | Refusal> {
  const found = await ctx.store.read(async (reader) => {
    const user = await personOf(reader, caller, ACCESS.registerPasskey);
    return isRefusal(user) ? user : { user, passkeys: await reader.passkeys.of(user.id) };
  });
  if (isRefusal(found)) return found;
  const { user, passkeys } = found;
  const another = refuseAnother(caller, passkeys);
  if (another) return another;
  const party = relyingPartyOf(ctx.baseUrl);
  if (isRefusal(party)) return party;
  const wrong = await confirmPassword(ctx, user, input.password, client);
  if (wrong) return wrong;
  if (passkeys.length >= PASSKEYS_MAX) return tooMany();
  const challenge = newToken(ctx);
  const asker = { kind: "person", id: user.id } as const;
  const ceremony = { kind: "registration", userId: user.id } as const;
  const unshared = await ctx.passkeyChallenges.add(challenge, asker, ceremony, ctx.now());
  if (unshared) return unshared;
  return creationOptions(user, party.id, challenge, PASSKEY_TTL_MS, passkeys);
}

export type RegistrationInput = Wire<typeof passkeyBody>;

/** Stores the passkey that the browser made, after its answer was verified. */
export async function finishRegistration(
  ctx: Context,
  caller: Caller,
  { name = "Passkey", response }: RegistrationInput,
): Promise<ReturnType<typeof passkeyResource> | Refusal> {
  const user = await ctx.store.read((reader) => personOf(reader, caller, ACCESS.registerPasskey));
  if (isRefusal(user)) return user;
  const party = relyingPartyOf(ctx.baseUrl);
  if (isRefusal(party)) return party;
  const unnamed = refuseText("name", name);
  if (unnamed) return unnamed;
  const answered = await takeAnswered(ctx.passkeyChallenges, response.response.clientDataJSON, ctx.now());
  if (isRefusal(answered)) return answered;
  if (answered?.ceremony.kind !== "registration" || answered.ceremony.userId !== user.id) {
    return challengeGone();
  }
  const credential = await ctx.passkeys.verifyRegistration(response, answered.challenge, party);
  if ("problem" in credential) return refuseField("response", credential.problem);
  const transports = (response.response.transports ?? []).slice(0, TRANSPORTS_MAX);
  return keep(ctx, caller, user.id, { ...credential, name, transports });
}

const TRANSPORTS_MAX = 8;

function keep(
  ctx: Context,
  caller: Caller,
  userId: string,
  credential: Pick<Passkey, "id" | "publicKey" | "counter" | "name" | "transports">,
): Promise<ReturnType<typeof passkeyResource> | Refusal> {
  return executeAudited(
    ctx,
    { kind: "user", id: userId },
    {
      scope: caller,
      needs: { ...credentialOf(caller), passkey: credential.id, passkeys: userId },
      decide(snapshot, now): Audited<ReturnType<typeof passkeyResource>> {
        const present = callerNow(caller, ACCESS.registerPasskey, snapshot, now);
        if (isRefusal(present)) return { answer: present };
        const { callerUser: user, callerSession } = snapshot;
        if (!user || !callerSession) throw new Error("a person's command without its person");
        const another = refuseAnother(present, snapshot.passkeys);
        if (another) return { answer: another };
        if (snapshot.passkey) return { answer: registeredAlready() };
        if (snapshot.passkeys.length >= PASSKEYS_MAX) return { answer: tooMany() };
        const passkey: Passkey = {
          ...credential,
          organisationId: user.organisationId,
          userId,
          countsForThreshold: countsForThreshold(user.passwordResetAt, now),
          createdAt: now,
          lastUsedAt: null,
        };
        const answer = passkeyResource(passkey);
        const after = { ...answer, user_id: userId };
        return {
          answer,
          put: [
            { kind: "passkey", before: null, row: passkey },
            { kind: "authSession", before: callerSession, row: { ...callerSession, passkeyProved: true } },
          ],
          entries: [{ action: "passkey.registered", subject: passkey.id, before: null, after }],
        };
      },
    },
  );
}

/** Who owes a passkey registers the first one only: else the password would be enough to add one to those there are. */
const refuseAnother = (caller: Caller, passkeys: readonly Passkey[]): Refusal | null =>
  caller.kind === "person" && caller.owesPasskey && passkeys.length > 0 ? refuseOwing() : null;

const tooMany = (): Refusal =>
  refuseField("response", `you have ${PASSKEYS_MAX} passkeys already; remove one first`);

const registeredAlready = (): Refusal =>
  refuse("already_exists", "response: this passkey is registered already.");
