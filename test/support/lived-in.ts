import { createAgent, setAgentStatus } from "../../src/services/admin/agents.ts";
import { MACHINE } from "../../src/services/admin/authority.ts";
import { fundBalance } from "../../src/services/admin/balances.ts";
import { correctBalance, decideCorrection } from "../../src/services/admin/corrections.ts";
import { inviteUser } from "../../src/services/admin/invitations.ts";
import { createKey } from "../../src/services/admin/keys.ts";
import { failPayoutOf, markPaid, submitPayouts } from "../../src/services/admin/payouts.ts";
import { createPolicy } from "../../src/services/admin/policies.ts";
import { createSchema } from "../../src/services/admin/schemas.ts";
import { createSession } from "../../src/services/admin/sessions.ts";
import { setPasskeyThreshold } from "../../src/services/admin/switches.ts";
import { createVerifier } from "../../src/services/admin/verifiers.ts";
import { createWebhook } from "../../src/services/admin/webhooks.ts";
import type { Context } from "../../src/services/context.ts";
import { resolveEscalation } from "../../src/services/warrants/resolve.ts";
import { payForUrl } from "../../src/services/x402/pay.ts";
import { evaluate } from "./evaluate.ts";
import {
  asksExact,
  asksExactOnBase,
  asksVoucher,
  delivers,
  givesAway,
  type Market,
  RECEIPT,
  silence,
} from "./market.ts";
import {
  ALL_PASS,
  createCaller,
  FOUR_CLAUSES,
  idempotencyOf,
  must,
  NONE_PASS,
  open,
  type Script,
  type Stage,
  settle,
  verify,
  warrantIn,
} from "./stage.ts";

/** An organisation that has been at work for a while: something on every page, much of it long, large or hostile. */

/** How many of each. Of what is not named there is a handful. */
export type Amounts = Readonly<
  Record<
    | "agents"
    | "people"
    | "policies"
    | "versions"
    | "clauses"
    | "deposits"
    | "endpoints"
    | "purchases"
    | "warrants"
    | "keys",
    number
  >
>;

export const A_FEW: Amounts = {
  ...{ agents: 12, people: 9, policies: 7, versions: 5, clauses: 9, deposits: 6 },
  ...{ endpoints: 4, purchases: 7, warrants: 44, keys: 7 },
};

const PAYEES = [
  "Northwind Traders",
  "Ada's Data Co.",
  "acct_01JHZK8W3V7M9QX2N5T6R8YB4C_settlement_eu_west",
  '<img src=x onerror="alert(1)">',
  "0x4f3a8c1d9e2b7065f1a4d3c8b9e0f7a6d5c4b3a2",
  "شركة البيانات الوطنية",
  "Consolidated Satellite Imagery and Weather Observation Services of the Northern Territories, Department ".padEnd(
    200,
    "x",
  ),
  "株式会社データ取引所",
  "Acme",
];
const AGENTS = [
  "Research buyer",
  "Invoice clerk, EMEA",
  "weather-poller-prod-eu-central-1-7f9c4b6d8-x2k4q",
  "Translation desk",
  "Image licensing",
  "Night-time crawler of public registers, with a name that somebody wrote without thinking of tables",
];
/** In the smallest unit of USDC: from the least to what a large company moves. */
const AMOUNTS = ["8400000", "1", "125000000", "1234567890123", "999999", "42000000000", "3500000"];
const HALF: Script = [null, null, "path_not_found", "value_mismatch"];
const SCRIPTS: readonly (Script | null)[] = [
  ALL_PASS,
  null,
  HALF,
  ALL_PASS,
  NONE_PASS,
  HALF,
  ["data_stale", null, null, null],
];

const at = <Item>(items: readonly Item[], index: number): Item => items[index % items.length] as Item;
const each = async (count: number, make: (index: number) => Promise<unknown>): Promise<void> => {
  for (let index = 0; index < count; index++) await make(index);
};
/** Many at once, where their order does not matter, so that they share a commit. */
const together = async (count: number, make: (index: number) => Promise<unknown>): Promise<void> => {
  for (let done = 0; done < count; done += AT_ONCE)
    await Promise.all(
      Array.from({ length: Math.min(AT_ONCE, count - done) }, (_, index) => make(done + index)),
    );
};
const AT_ONCE = 50;

/**
 * Puts something on every page of the stage's organisation, in its mode.
 *
 * @param stage its context has what `SCRIPTED` has, and the market's `x402`
 * @param endpointUrl where deliveries go
 */
export async function liveIn(
  stage: Stage,
  market: Market,
  endpointUrl: string,
  amounts = A_FEW,
): Promise<void> {
  const { ctx, organisationId, mode } = stage;
  const own = { organisation_id: organisationId };
  const inMode = { ...own, mode };
  must(
    await fundBalance(ctx, MACHINE, { ...inMode, amount: "9000000000000000", reference: "Opening balance" }),
  );
  must(await fundBalance(ctx, MACHINE, { ...inMode, asset: "EUROC", amount: "123456789012345678" }));
  await together(amounts.deposits, (index) =>
    fundBalance(ctx, MACHINE, {
      ...inMode,
      amount: at(AMOUNTS, index),
      reference: `SEPA 2026-11-${index} / ${"reference ".repeat(1 + (index % 5))}`,
    }),
  );
  await madeRules(stage, amounts);
  await each(amounts.endpoints, async (index) =>
    createWebhook(ctx, MACHINE, {
      ...inMode,
      url: `${endpointUrl}/hooks/holdfast/${index}`,
      ...(index % 2 === 1 && { events: ["warrant.released", "warrant.refunded"] }),
    }),
  );
  await together(amounts.people, (index) =>
    inviteUser(ctx, MACHINE, {
      ...own,
      email: `person-${index}.with.a.rather.long.address@subsidiary.example.com`,
      name: at(["Grace Hopper", "Łucja Wąs-Kowalczyk-Brzęczyszczykiewicz", "Bo"], index),
      role: at(["viewer", "operator", "admin"] as const, index),
    }),
  );
  const callers = await madeAgents(stage, amounts);
  await together(amounts.warrants, async (index) => {
    const caller = at(callers, index);
    const input = {
      ...{ payee: at(PAYEES, index), amount: at(AMOUNTS, index) },
      ...(index % 3 !== 0 && { agent_id: caller.agentId }),
    };
    const { id } = warrantIn(await open(stage, index % 3 === 0 ? stage.operator : caller, input));
    const script = at(SCRIPTS, index);
    if (script !== null) must(await verify(stage, stage.operator, id, script));
    if (index % 14 === 2)
      must(await settle(stage, stage.operator, id, "partial_release", { releasedBps: 2_550 }));
    if (index % 14 === 5)
      must(
        await resolveEscalation(
          ctx,
          stage.operator,
          {
            id,
            decision: "dispute",
            releasedBps: null,
            note: "The report is of the wrong month, and the seller says otherwise.",
            ifMatch: null,
          },
          idempotencyOf(),
        ),
      );
  });
  await bought(stage, market, amounts.purchases);
  // What this one held is frozen.
  must(await setAgentStatus(ctx, MACHINE, { agent_id: at(callers, 3).agentId, status: "killed" }));
  must(await setAgentStatus(ctx, MACHINE, { agent_id: at(callers, 4).agentId, status: "paused" }));
  await paidOut(stage);
}

/** Payouts of every status, something that is owed again, and corrections that wait, are recorded and withdrawn. */
async function paidOut({ ctx, organisationId, mode, owner }: Stage): Promise<void> {
  const inMode = { organisation_id: organisationId, mode };
  const [paid, failed, returned] = must(await submitPayouts(ctx, MACHINE, inMode)).data;
  must(await markPaid(ctx, MACHINE, { payout_id: paid?.id ?? "", reference: "SEPA 2026-11-23 / 4711" }));
  const reason = `The bank knows no such account, and sends the money back: ${"IBAN ".repeat(40)}`.slice(
    0,
    200,
  );
  must(await failPayoutOf(ctx, MACHINE, { payout_id: failed?.id ?? "", reason }));
  const back = { payout_id: returned?.id ?? "", reason: "It came back", returned: true };
  must(await markPaid(ctx, MACHINE, { payout_id: back.payout_id, reference: "x".repeat(200) }));
  must(await failPayoutOf(ctx, MACHINE, back));
  const deposited = async (reference: string) =>
    must(await fundBalance(ctx, MACHINE, { ...inMode, amount: "999", reference })).id;
  const corrected = (deposit_id: string) =>
    correctBalance(ctx, MACHINE, { deposit_id, amount: "9990", reason }).then(must);
  const setThreshold = async (amount: string | null) =>
    must(await setPasskeyThreshold(ctx, MACHINE, { organisation_id: organisationId, amount }));
  await corrected(await deposited("A digit too few, and seen at once"));
  await setThreshold("1");
  const { id: correction_id } = await corrected(await deposited("A digit too few, which was none"));
  must(await decideCorrection(ctx, owner, { correction_id, decision: "withdraw" }));
  await corrected(await deposited("A digit too few"));
  await setThreshold(null);
}

async function madeRules({ ctx, organisationId }: Stage, amounts: Amounts): Promise<void> {
  const own = { organisation_id: organisationId };
  const rulesOf = (version: number) => ({
    bands: [
      { minScore: 1, outcome: "release" },
      { minScore: 0.7, outcome: "partial_release", releasedBps: 6_000 + version, label: "nearly all of it" },
      { minScore: 0.4, outcome: "escalate" },
      { minScore: 0, outcome: "refund" },
    ],
    ...(version > 1 && { alwaysEscalate: ["data_stale"], maxAmount: "5000000000000" }),
  });
  await each(amounts.policies, async (index) => {
    const name =
      index === 0
        ? "Default"
        : `${at(["Weather data", "Images", "Translations of contracts"], index)} ${index}`;
    await each(index === 0 ? amounts.versions : 1, (version) =>
      createPolicy(ctx, MACHINE, { ...own, name, rules: rulesOf(version) }),
    );
  });
  // The newest one decides.
  must(await createPolicy(ctx, MACHINE, { ...own, name: "Default", rules: rulesOf(0) }));
  await together(amounts.clauses, async (index) => {
    const schema = {
      type: "object",
      required: ["temperature"],
      properties: { temperature: { type: "number", maximum: index } },
    };
    must(await createSchema(ctx, MACHINE, { ...own, name: `weather.observation.v${index + 1}`, schema }));
    must(
      await createVerifier(ctx, MACHINE, {
        ...own,
        type: "json.schema",
        name: `Weather observation, version ${index + 1}`,
        config: { schema: `weather.observation.v${index + 1}` },
      }),
    );
  });
}

async function madeAgents(stage: Stage, amounts: Amounts) {
  const { ctx, organisationId, mode } = stage;
  await together(amounts.agents - AGENTS.length, async (index) => {
    const { id } = must(
      await createAgent(ctx, MACHINE, {
        organisation_id: organisationId,
        mode,
        name: `Buyer ${index}`,
        must_be_named: true,
      }),
    );
    must(await createSession(ctx, MACHINE, { agent_id: id, amount_ceiling: at(AMOUNTS, index) }));
  });
  const callers = [];
  for (const [index, name] of AGENTS.entries()) {
    const caller = await createCaller(stage, { name, failure_budget: 1_000, must_be_named: index > 0 });
    const limits = { agent_id: caller.agentId, amount_ceiling: "900000000000000" };
    if (index !== 5) must(await createSession(ctx, MACHINE, limits));
    if (index === 1) {
      await each(amounts.keys, async () => must(await createKey(ctx, MACHINE, { agent_id: caller.agentId })));
      await each(amounts.keys, async () =>
        must(
          await createSession(ctx, MACHINE, {
            ...limits,
            warrant_limit: 1_000_000,
            per_warrant_max: "90000000000000",
            hourly_max: String(amounts.warrants * 200_000_000_000),
            daily_max: String(amounts.warrants * 900_000_000_000),
            payees: [...PAYEES, "acme*"],
            source_origins: ["http://source.example", "https://api.weather.example:*"],
          }),
        ),
      );
    }
    callers.push(caller);
  }
  return callers;
}

/** Purchases of every end: free, by voucher, paid on a chain, and not known whether paid. */
async function bought(stage: Stage, market: Market, count: number): Promise<void> {
  const exact = (amount: string) => (stage.mode === "live" ? asksExactOnBase(amount) : asksExact(amount));
  const spec = { clauses: [FOUR_CLAUSES[0]] };
  const ends = [
    [givesAway("free"), delivers({})],
    [asksVoucher("8400000"), delivers({ c0: 1 })],
    [asksVoucher("1250000"), silence(false)],
    [exact("1000000"), delivers({ c0: 1 }, RECEIPT)],
    [exact("2000000"), silence(true)],
  ] as const;
  // What sellers answer is no script.
  const ctx: Context = {
    ...stage.ctx,
    evaluate: async ({ clauses, evidence, schemas, now }) => evaluate(clauses, evidence, schemas, now),
  };
  await each(count, async (index) => {
    const [first, paid] = at(ends, index);
    market.first = first;
    market.paid = () => paid;
    market.findings = ["open"];
    const url = `https://api.weather.example/v2/observations/${"station-".repeat(1 + (index % 9))}${index}?format=json&units=metric`;
    must(await payForUrl(ctx, stage.operator, { url, max_amount: "9000000", spec }, idempotencyOf()));
  });
}
