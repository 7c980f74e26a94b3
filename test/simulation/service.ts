import type { Agent } from "../../src/core/agent.ts";
import { deposit as depositLegs } from "../../src/core/postings.ts";
import type { Caller, Mode, Role } from "../../src/core/roles.ts";
import type { Put } from "../../src/store/change.ts";
import type { Scope } from "../../src/store/scope.ts";
import type { TestContext } from "../support/context.ts";
import { fresh } from "../support/stage.ts";
import { PlainModel } from "./plain-model.ts";
import type { ModelWalletLimits } from "./plain-treasury.ts";
import { ADDRESSES, createTreasury, type SimulatedTreasury } from "./treasury.ts";

/** One organisation of the real service, the model of it, and how the two are compared. */
export type Simulated = {
  readonly ctx: TestContext;
  readonly organisationId: string;
  readonly mode: Mode;
  readonly people: Readonly<Record<Role, Caller>>;
  readonly keys: readonly Caller[];
  readonly agentIds: readonly string[];
  readonly model: PlainModel;
  /** Null where people pay by their own means. */
  readonly treasury: SimulatedTreasury | null;
  /** What a payee of the commands is called. */
  payeeOf(name: string): string;
};

export type Setting = {
  readonly mode: Mode;
  /** Without an admin there is only one senior person, so nobody could decide a dispute that this person raised. */
  readonly hasAdmin: boolean;
  readonly budgets: readonly number[];
  readonly mustBeNamed: boolean;
  /** How much a wallet on a chain sends by itself; null where there is none. Only the sandbox has one. */
  readonly walletLimits: ModelWalletLimits | null;
};

/** The hash of a person's sign-in token. The sign-in lasts for the whole history. */
const signInOf = (userId: string): string => `sign-in of ${userId}`;

const keyOf = (agentId: string): string => `key_of_${agentId}`;

/** Makes a new organisation in one commit. Each run has its own, and all runs share a database. */
export async function createSimulated(ctx: TestContext, setting: Setting): Promise<Simulated> {
  const { mode, hasAdmin, walletLimits } = setting;
  const createdAt = ctx.now();
  const organisationId = ctx.newId("organisation");
  const userIds = {
    viewer: ctx.newId("user"),
    operator: ctx.newId("user"),
    admin: ctx.newId("user"),
    owner: ctx.newId("user"),
  };
  const roles: readonly Role[] = ["viewer", "operator", ...(hasAdmin ? (["admin"] as const) : []), "owner"];
  const agents = newAgents(ctx, organisationId, setting, createdAt);
  const depositId = ctx.newId("deposit");
  await commitAll(ctx, { organisationId, mode }, { id: depositId, createdAt }, [
    {
      kind: "organisation",
      before: null,
      row: {
        id: organisationId,
        name: "Simulation",
        killSwitch: false,
        passkeyThreshold: null,
        hidesSpecs: false,
        secondFactor: false,
        messagingDecisions: false,
        createdAt,
      },
    },
    ...roles.map((role) => userRow(organisationId, userIds[role], role, createdAt)),
    ...agents.map((row) => ({ kind: "agent" as const, before: null, row })),
    ...agents.map((agent) => keyRow(agent, createdAt)),
    ...roles.map((role) => signInRow(userIds[role], mode, createdAt)),
  ]);
  const model = new PlainModel([...(hasAdmin ? [userIds.admin] : []), userIds.owner]);
  model.money.fund(depositId, FUNDED.asset, FUNDED.amount, null);
  for (const { id, failureBudget: budget, mustBeNamed } of agents) {
    model.agents.set(id, { id, budget, mustBeNamed, status: "active", failures: 0 });
  }
  const treasury = walletLimits && (await createTreasury(ctx, model.money, walletLimits));
  const person = (role: Role): Caller => ({
    kind: "person",
    userId: userIds[role],
    role,
    organisationId,
    mode,
    signInHash: signInOf(userIds[role]),
    owesPasskey: false,
  });
  return {
    ctx,
    organisationId,
    mode,
    people: {
      viewer: person("viewer"),
      operator: person("operator"),
      admin: person(hasAdmin ? "admin" : "owner"),
      owner: person("owner"),
    },
    keys: agents.map(({ id }) => ({ kind: "key", keyId: keyOf(id), agentId: id, organisationId, mode })),
    agentIds: agents.map(({ id }) => id),
    model,
    treasury,
    payeeOf: (name) => (treasury && ADDRESSES[name]) ?? name,
  };
}

const FUNDED = { asset: "USDC", amount: 5_000n } as const;

/** Writes the rows, and funds the organisation. */
async function commitAll(
  ctx: TestContext,
  scope: Scope,
  { id, createdAt }: { readonly id: string; readonly createdAt: number },
  rows: readonly Put[],
): Promise<void> {
  const deposit = { id, ...scope, ...FUNDED, reference: null, createdAt };
  await ctx.store.execute({
    scope: null,
    needs: {},
    decide: () => ({
      answer: true,
      change: {
        put: [
          ...rows,
          { kind: "deposit", row: deposit },
          {
            kind: "posting",
            row: {
              ...{ ...scope, asset: deposit.asset, legs: depositLegs(deposit.amount) },
              ...{ kind: "deposit", causeId: deposit.id, payee: null, recordedAt: createdAt },
            },
          },
        ],
      },
    }),
  });
}

/** An agent for each failure budget of the setting. */
const newAgents = (ctx: TestContext, organisationId: string, setting: Setting, createdAt: number): Agent[] =>
  setting.budgets.map((failureBudget, index) => ({
    id: ctx.newId("agent"),
    organisationId,
    mode: setting.mode,
    name: `agent ${index}`,
    identity: "did:web:example",
    status: "active",
    failureBudget,
    failureCount: 0,
    mustBeNamed: index === 0 && setting.mustBeNamed,
    createdAt,
  }));

const userRow = (organisationId: string, id: string, role: Role, createdAt: number): Put => ({
  kind: "user",
  before: null,
  row: {
    id,
    organisationId,
    email: `${fresh(role)}@example.com`,
    name: role,
    role,
    passwordHash: "",
    passwordResetAt: null,
    removedAt: null,
    createdAt,
  },
});

const keyRow = ({ id, organisationId, mode }: Agent, createdAt: number): Put => ({
  kind: "apiKey",
  before: null,
  row: {
    id: keyOf(id),
    organisationId,
    agentId: id,
    mode,
    secretHash: fresh(id),
    lastFour: "0000",
    expiresAt: null,
    lastUsedAt: null,
    createdAt,
    revokedAt: null,
  },
});

const signInRow = (userId: string, mode: Mode, createdAt: number): Put => ({
  kind: "authSession",
  before: null,
  row: {
    ...{ tokenHash: signInOf(userId), userId, mode, createdAt, expiresAt: Number.MAX_SAFE_INTEGER },
    ...{ passkeyProved: false, network: null, agent: null, lastUsedAt: null },
  },
});

/** More things of one kind than any history makes. */
export const EVERY = 1_000;

/** All data of the organisation, in a form that is the same for the service and the model. */
export function snapshotOf(simulated: Simulated): object {
  const { ctx, organisationId, mode, model } = simulated;
  const { reader } = ctx;
  const scope = { organisationId, mode };
  const agents = reader.agents.list(scope);
  return {
    balances: Object.fromEntries(reader.balances.list(scope).map(({ asset, balance }) => [asset, balance])),
    warrants: reader.warrants
      .byCreation(scope, {}, {}, EVERY)
      .map(({ id, state, version, amount, releasedBps, settledAt, sessionId, policyId }) => ({
        ...{ id, state, version, amount, releasedBps, settledAt, sessionId, policyId },
      })),
    agents: agents.map((agent) => ({
      id: agent.id,
      status: agent.status,
      failures: agent.failureCount,
      counts: Object.fromEntries(
        Object.entries(reader.agents.countsByState(agent)).filter(([, count]) => count > 0),
      ),
    })),
    sessions: model.sessions.map(({ id }) => {
      const session = reader.agents.session(id);
      return [session?.amountSpent, session?.warrantCount, session?.failureCount, session?.revokedAt];
    }),
    escalations: reader.escalations
      .list(scope, EVERY)
      .map(({ warrantId, score, reasonCodes, status, decision, raisedBy }) => ({
        ...{ warrantId, score, reasonCodes, status, decision, raisedBy },
      }))
      .sort(byText),
    ...moneyOf(simulated),
  };
}

/** Deposits, corrections, payees and payouts: in the order in which they came to be. */
function moneyOf({ ctx, organisationId, mode }: Simulated): object {
  const { reader } = ctx;
  const scope = { organisationId, mode };
  return {
    deposits: reader.deposits
      .list(scope, null, EVERY)
      .map(({ id, asset, amount, reference }) => ({ id, asset, amount, reference }))
      .reverse(),
    corrections: reader.corrections
      .list(scope, null, EVERY)
      .map(({ id, depositId, asset, amountBefore: before, amountAfter: after, proposedBy, status }) => ({
        ...{ id, depositId, asset, before, after, proposedBy, status },
      }))
      .reverse(),
    payees: reader.payees
      .list(scope, 0, EVERY)
      .map(({ asset, payee, balance }) => ({ asset, payee, ...balance })),
    payouts: reader.payouts
      .list(scope, null, null, EVERY)
      .map(({ id, asset, payee, amount, rail, status, reference, reason }) => ({
        ...{ id, asset, payee, amount, rail, status, reference, reason },
      }))
      .reverse(),
  };
}

export function snapshotOfModel({ model }: Simulated): object {
  const warrants = [...model.warrants.values()];
  return {
    balances: Object.fromEntries(model.money.balances),
    warrants: warrants
      .map(({ id, state, version, amount, releasedBps, settledAt, sessionId, policyId }) => ({
        ...{ id, state, version, amount, releasedBps, settledAt, sessionId, policyId },
      }))
      .reverse(),
    agents: [...model.agents.values()].map(({ id, status, failures }) => {
      const counts: Record<string, number> = {};
      for (const { agentId, state } of warrants) if (agentId === id) counts[state] = (counts[state] ?? 0) + 1;
      return { id, status, failures, counts };
    }),
    sessions: model.sessions.map(({ spent, count, failures, revokedAt }) => [
      spent,
      count,
      failures,
      revokedAt,
    ]),
    escalations: model.escalations.map((escalation) => ({ ...escalation })).sort(byText),
    deposits: model.money.deposits,
    corrections: model.money.corrections,
    payees: model.money.payees,
    payouts: model.money.payouts,
  };
}

const byText = (a: object, b: object): number => JSON.stringify(a).localeCompare(JSON.stringify(b));
