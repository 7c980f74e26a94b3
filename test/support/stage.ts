import { sha256 } from "../../src/core/canonical.ts";
import { UNSEEN_ANSWER } from "../../src/core/capsule.ts";
import { resultOf } from "../../src/core/clauses/evaluate.ts";
import { evidenceHashOf, reachedEvidence, summarise } from "../../src/core/clauses/evidence.ts";
import type { ClauseCode } from "../../src/core/clauses/reason-codes.ts";
import { type ErrorCode, isRefusal, type Refusal } from "../../src/core/errors.ts";
import type { KeyCaller, Mode, PersonCaller, Role } from "../../src/core/roles.ts";
import type { warrantResource } from "../../src/resources/warrant.ts";
import { type AgentInput, createAgent } from "../../src/services/admin/agents.ts";
import { MACHINE } from "../../src/services/admin/authority.ts";
import { fundBalance } from "../../src/services/admin/balances.ts";
import { createKey } from "../../src/services/admin/keys.ts";
import { createOrganisation } from "../../src/services/admin/organisations.ts";
import { createUser } from "../../src/services/admin/users.ts";
import type { Context } from "../../src/services/context.ts";
import type { Answer, Idempotency } from "../../src/services/idempotency.ts";
import { type OpenInput, openWarrant } from "../../src/services/warrants/open.ts";
import { settleWarrant } from "../../src/services/warrants/settle.ts";
import { verifyWarrant } from "../../src/services/warrants/verify.ts";

/** An organisation with people in it, and short calls of the verbs. */
export type Stage = {
  readonly ctx: Context;
  readonly organisationId: string;
  readonly mode: Mode;
  readonly operator: PersonCaller;
  readonly admin: PersonCaller;
  readonly owner: PersonCaller;
};

/** The value; throws where it is a refusal. */
export function must<T>(value: T | Refusal): T {
  if (isRefusal(value)) throw new Error(`refused: ${value.refused}: ${value.message}`);
  return value;
}

/** The refusal's code, or the answer's status. */
export const codeOf = (value: Answer | Refusal): ErrorCode | number =>
  isRefusal(value) ? value.refused : value.status;

export type WarrantBody = ReturnType<typeof warrantResource>;

export const warrantIn = (answer: Answer | Refusal): WarrantBody =>
  JSON.parse(must(answer).body) as WarrantBody;

let sequence = 0;
/** Never the same twice in the process. */
export const fresh = (name: string): string => `${name}-${++sequence}`;

export const idempotencyOf = (key = fresh("key"), fingerprint = "same"): Idempotency => ({
  key,
  fingerprint: sha256(fingerprint),
});

export async function createStage(
  ctx: Context,
  { mode = "live", funds = "1000000" }: { readonly mode?: Mode; readonly funds?: string } = {},
): Promise<Stage> {
  const password = "correct horse battery staple";
  const created = must(
    await createOrganisation(ctx, {
      name: "Stage",
      owner_email: `${fresh("owner")}@example.com`,
      owner_password: password,
    }),
  );
  const organisationId = created.organisation.id;
  const person = async (role: Role): Promise<PersonCaller> => {
    const user = must(
      await createUser(ctx, MACHINE, {
        organisation_id: organisationId,
        email: `${fresh(role)}@example.com`,
        password,
        role,
      }),
    );
    return signedIn(ctx, { kind: "person", userId: user.id, role, organisationId, mode });
  };
  if (funds !== "0") {
    must(await fundBalance(ctx, MACHINE, { organisation_id: organisationId, mode, amount: funds }));
  }
  return {
    ctx,
    organisationId,
    mode,
    operator: await person("operator"),
    admin: await person("admin"),
    owner: await signedIn(ctx, {
      kind: "person",
      userId: created.owner.id,
      role: "owner",
      organisationId,
      mode,
    }),
  };
}

/** The last time that a Date can be. */
const LAST_TIME_MS = 8.64e15;

/** The person as a caller, whose sign-in lasts however a test moves the clock. */
export async function signedIn(
  ctx: Context,
  person: Omit<PersonCaller, "signInHash" | "owesPasskey">,
): Promise<PersonCaller> {
  const tokenHash = fresh(`sign-in of ${person.userId}`);
  const row = {
    ...{ tokenHash, userId: person.userId, mode: person.mode },
    ...{ createdAt: ctx.now(), expiresAt: LAST_TIME_MS, passkeyProved: false },
    ...{ network: null, agent: null, lastUsedAt: null },
  };
  await ctx.store.execute({
    scope: person,
    needs: {},
    decide: () => ({ answer: null, change: { put: [{ kind: "authSession", before: null, row }] } }),
  });
  return { ...person, signInHash: tokenHash, owesPasskey: false };
}

/** An agent whose key is the caller. */
export async function createCaller(stage: Stage, input: Partial<AgentInput> = {}): Promise<KeyCaller> {
  const { ctx, organisationId, mode } = stage;
  const agent = must(
    await createAgent(ctx, MACHINE, {
      organisation_id: organisationId,
      mode,
      name: fresh("agent"),
      ...input,
    }),
  );
  const key = must(await createKey(ctx, MACHINE, { agent_id: agent.id }));
  return { kind: "key", keyId: key.id, agentId: agent.id, organisationId, mode };
}

/** Four clauses: a check can pass none, a quarter, a half, three quarters or all of them. */
export const FOUR_CLAUSES = [0, 1, 2, 3].map((index) => ({ kind: "json.jsonpath", path: `$.c${index}` }));

export const open = (
  { ctx }: Stage,
  caller: KeyCaller | PersonCaller,
  input: Partial<OpenInput> = {},
  idempotency = idempotencyOf(),
): Promise<Answer | Refusal> =>
  openWarrant(
    ctx,
    caller,
    {
      amount: "100",
      payee: "acme",
      deadline: new Date(ctx.now() + 3_600_000).toISOString(),
      spec: { clauses: FOUR_CLAUSES },
      ...input,
    },
    idempotency,
  );

/** The code of each clause; null where it passes. `scriptedSource` and `scriptedEvaluate` make a check find these codes. */
export type Script = readonly (ClauseCode | null)[];
export const ALL_PASS: Script = [null, null, null, null];
export const NONE_PASS: Script = ["path_not_found", "path_not_found", "path_not_found", "path_not_found"];

export const verify = (
  { ctx }: Stage,
  caller: KeyCaller | PersonCaller,
  warrantId: string,
  script: Script = ALL_PASS,
  idempotency = idempotencyOf(),
  ifMatch: number | null = null,
): Promise<Answer | Refusal> =>
  verifyWarrant(ctx, caller, { warrantId, sourceUrl: sourceUrlOf(script), ifMatch }, idempotency);

export const settle = (
  { ctx }: Stage,
  caller: KeyCaller | PersonCaller,
  warrantId: string,
  decision: "release" | "partial_release" | "refund",
  {
    releasedBps = null,
    idempotency = idempotencyOf(),
    ifMatch = null,
  }: {
    readonly releasedBps?: number | null;
    readonly idempotency?: Idempotency;
    readonly ifMatch?: number | null;
  } = {},
): Promise<Answer | Refusal> =>
  settleWarrant(ctx, caller, { warrantId, decision, releasedBps, ifMatch }, idempotency);

const sourceUrlOf = (script: Script): string =>
  `http://source.example/#${encodeURIComponent(JSON.stringify(script))}`;

/** A source whose answer is the script in its URL. */
const scriptedSource: Context["fetchEvidence"] = async (url) => {
  const body = Buffer.from(decodeURIComponent(new URL(url).hash.slice(1)));
  return {
    evidence: reachedEvidence({ status: 200, body }),
    status: 200,
    bytes: body.length,
    durationMs: 7,
    answer: UNSEEN_ANSWER,
  };
};

/** Gives every clause the result that the evidence's script says. */
const scriptedEvaluate: Context["evaluate"] = async ({ clauses, evidence, now }) => {
  if (!evidence.reached) throw new Error("a script is always reached");
  const script = JSON.parse(Buffer.from(evidence.body).toString()) as Script;
  const details = clauses.map((clause, index) => resultOf(clause, script[index] ?? null));
  return summarise(details, evidenceHashOf(evidence), now);
};

export const SCRIPTED = { fetchEvidence: scriptedSource, evaluate: scriptedEvaluate } as const;
