import { randomUUID } from "node:crypto";
import { hashSecret } from "../../src/core/api-key.ts";
import {
  type Passkey,
  type PasskeyApproval,
  type SignedDecision,
  submissionOf,
} from "../../src/core/passkey.ts";
import type { PersonCaller } from "../../src/core/roles.ts";
import type { PayoutResource } from "../../src/resources/payout.ts";
import { MACHINE } from "../../src/services/admin/authority.ts";
import { readBatch } from "../../src/services/admin/payout-batch.ts";
import { submitPayouts } from "../../src/services/admin/payouts.ts";
import { setPasskeyThreshold } from "../../src/services/admin/switches.ts";
import type { Context } from "../../src/services/context.ts";
import { type Authenticator, type Credential, createAuthenticator, type Twist } from "./authenticator.ts";
import type { Client, Json, Reply } from "./client.ts";
import { must, PASSWORD, type Person, type TestOrganisation } from "./organisations.ts";
import type { Service } from "./server.ts";

/** A person's passkey, on an authenticator in software. */
export type TestPasskey = { readonly authenticator: Authenticator; readonly credential: Credential };

/** What is signed: a decision on a version of a warrant. */
export type Decision = {
  readonly warrant_id: string;
  readonly version: number;
  readonly decision: string;
  readonly released_bps?: number;
};

export const registrationOptions = (client: Client, { as }: Person, password = PASSWORD): Promise<Reply> =>
  client.post("/auth/passkeys/options", { password }, { as, key: null });

/** The answer to a registration. The twist changes the authenticator's response. */
export async function registers(
  client: Client,
  person: Person,
  authenticator: Authenticator,
  twist?: Twist,
): Promise<Reply> {
  const options = await registrationOptions(client, person);
  if (options.status !== 200) throw new Error(`no options: ${options.text}`);
  const response = authenticator.create(options.body, twist);
  return client.post("/auth/passkeys", { name: "Laptop", response }, { as: person.as, key: null });
}

/** Registers a passkey, which must work. */
export async function enrol(client: Client, person: Person, origin?: string): Promise<TestPasskey> {
  const authenticator = createAuthenticator(origin);
  const reply = await registers(client, person, authenticator);
  if (reply.status !== 201) throw new Error(`no passkey: ${reply.text}`);
  return { authenticator, credential: authenticator.credentials[0]! };
}

/** The answer to the removal of a passkey. */
export const removes = (
  client: Client,
  { as }: Pick<Person, "as">,
  id: string,
  password = PASSWORD,
): Promise<Reply> => client.post(`/auth/passkeys/${id}/remove`, { password }, { as, key: null });

export const challenge = (client: Client, { as }: Pick<Person, "as">, decision: Decision): Promise<Reply> =>
  client.post("/auth/passkey/challenge", decision, { as, key: null });

/** The answer to an assertion over a decision. The twist changes the authenticator's response. */
export const asserts = (
  client: Client,
  person: Pick<Person, "as">,
  passkey: TestPasskey,
  decision: Decision,
  twist?: Twist,
): Promise<Reply> => assertsTo(client, person, passkey, ["/auth/passkey/challenge", decision], twist);

/** What a passkey is asked to sign: the path of the challenge, and its body. */
export type Asked = readonly [path: string, body: object];

async function assertsTo(
  client: Client,
  { as }: Pick<Person, "as">,
  { authenticator, credential }: TestPasskey,
  [path, body]: Asked,
  twist?: Twist,
): Promise<Reply> {
  const options = await client.post(path, body, { as, key: null });
  if (options.status !== 200) throw new Error(`no challenge: ${options.text}`);
  const response = authenticator.get(options.body, credential, twist);
  return client.post("/auth/passkey/assertion", { response }, { as, key: null });
}

/** The token of a signed decision. */
export const approve = (
  client: Client,
  person: Pick<Person, "as">,
  passkey: TestPasskey,
  decision: Decision,
): Promise<string> => signsFor(client, person, passkey, ["/auth/passkey/challenge", decision]);

/** The token of what was signed. */
export async function signsFor(
  client: Client,
  person: Pick<Person, "as">,
  passkey: TestPasskey,
  asked: Asked,
): Promise<string> {
  const reply = await assertsTo(client, person, passkey, asked);
  if (reply.status !== 201) throw new Error(`no approval: ${reply.text}`);
  return reply.body.token;
}

/** The signed-in person's own passkeys. */
export const passkeysOf = async (client: Client, { as }: Pick<Person, "as">): Promise<Json[]> =>
  (await client.get("/auth/passkeys", { as })).body.data;

/** Sets the threshold, as the operator of the machine does; null turns it off. */
export async function setThreshold(
  service: Service,
  organisation: TestOrganisation,
  amount: string | null,
): Promise<void> {
  must(await setPasskeyThreshold(service.ctx, MACHINE, { organisation_id: organisation.id, amount }));
}

/** The token of a signature by a passkey that counts, put into the ledger without an authenticator. */
export async function putSignature(
  ctx: Context,
  { organisationId, userId, mode }: PersonCaller,
  signed: Omit<SignedDecision, "userId">,
): Promise<string> {
  const token = randomUUID();
  const createdAt = ctx.now();
  const passkey: Passkey = {
    ...{ id: token, organisationId, userId, name: "Laptop", publicKey: "", counter: 0, transports: [] },
    ...{ countsForThreshold: true, createdAt, lastUsedAt: null },
  };
  const approval: PasskeyApproval = {
    ...{ ...signed, userId, tokenHash: hashSecret(token), passkeyId: passkey.id, assertion: "{}" },
    ...{ createdAt, expiresAt: createdAt + 60_000, usedAt: null },
  };
  await ctx.store.execute({
    scope: { organisationId, mode },
    needs: {},
    decide: () => ({
      answer: null,
      change: {
        put: [
          { kind: "passkey", before: null, row: passkey },
          { kind: "passkeyApproval", before: null, row: approval },
        ],
      },
    }),
  });
  return token;
}

/** Submits what is owed to a payee in USDC, or to all, as an admin who signs exactly this. */
export async function submitSigned(
  ctx: Context,
  admin: PersonCaller,
  payee?: string,
): Promise<readonly PayoutResource[]> {
  const asked = payee === undefined ? {} : { payee };
  const { digest } = await ctx.store.read((reader) => readBatch(reader, admin, asked));
  const passkey_token = await putSignature(ctx, admin, submissionOf(admin.userId, digest));
  const scope = { organisation_id: admin.organisationId, mode: admin.mode };
  return must(await submitPayouts(ctx, admin, { ...scope, ...asked, batch: digest, passkey_token })).data;
}
