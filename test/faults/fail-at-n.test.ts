import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, spyOn, test } from "bun:test";
import { UNSEEN_ANSWER } from "../../src/core/capsule.ts";
import { reachedEvidence } from "../../src/core/clauses/evidence.ts";
import { isRefusal } from "../../src/core/errors.ts";
import type { Decision } from "../../src/core/escalation.ts";
import type { Finding } from "../../src/core/x402/purchase.ts";
import { followAgents } from "../../src/jobs/agents.ts";
import { sweepDeadlines } from "../../src/jobs/deadlines.ts";
import { reconcilePurchases, recoverPurchases } from "../../src/jobs/purchases.ts";
import { recoverAtStart, recoverOverdueChecks } from "../../src/jobs/recover.ts";
import type { PaidAnswer } from "../../src/platform/x402-request.ts";
import { setAgentStatus } from "../../src/services/admin/agents.ts";
import { MACHINE } from "../../src/services/admin/authority.ts";
import { fundBalance } from "../../src/services/admin/balances.ts";
import { createSession } from "../../src/services/admin/sessions.ts";
import { createWebhook } from "../../src/services/admin/webhooks.ts";
import type { Context, FetchEvidence } from "../../src/services/context.ts";
import { CHECK_LEASE_MS } from "../../src/services/warrants/interrupt.ts";
import { resolvePurchase } from "../../src/services/x402/purchases.ts";
import type { AllRows } from "../support/all-rows.ts";
import type { Json, Reply } from "../support/client.ts";
import { ENGINE } from "../support/engine.ts";
import { withCommands } from "../support/failing-commands.ts";
import { BEGIN, watchStatements } from "../support/failing-statements.ts";
import { asksExact, delivers, type Market, openMarket, SELLER_URL, silence } from "../support/market.ts";
import { noContradiction, noFault } from "../support/no-fault.ts";
import { must, type TestAgent, type TestOrganisation } from "../support/organisations.ts";
import { type ShellService, startTestShell } from "../support/server.ts";
import type { FailingStatements, Fault } from "../support/statement-faults.ts";
import { together } from "../support/together.ts";
import { answerOf, type Each, EVERY, isDone, MANY, strikeEvery, type Where } from "./fault-at-every.ts";

/**
 * Every command that moves money, with a fault at every statement of its commit. The ledger then has nothing of the command or
 * all of it, the audit finds nothing, and the same request sent again does it once.
 */

const TEST_MS = 60_000 * MANY;

let statements: FailingStatements;
let printed: ReturnType<typeof spyOn>;
beforeAll(() => {
  statements = watchStatements();
  printed = spyOn(console, "error").mockImplementation(() => {});
});
afterAll(() => {
  statements.restore();
  printed.mockRestore();
});

let service: ShellService;
let home: TestOrganisation;
let agent: TestAgent;
/** The sellers and the chain of the tests. */
let market: Market;
/** The answer of the source. A test may make it wait. */
let source: FetchEvidence;
/** The checks whose source waits. The end of a test lets them go. */
let hanging: { readonly end: PromiseWithResolvers<void>; readonly checks: Promise<unknown>[] };
beforeEach(async () => {
  hanging = { end: Promise.withResolvers(), checks: [] };
  source = async (url) => {
    const body = Buffer.from(decodeURIComponent(new URL(url).pathname.slice(1)));
    return {
      evidence: reachedEvidence({ status: 200, body }),
      status: 200,
      bytes: body.length,
      durationMs: 1,
      answer: UNSEEN_ANSWER,
    };
  };
  market = openMarket();
  service = startTestShell({ fetchEvidence: (...asked) => source(...asked), x402: market.x402 });
  home = await service.organisation();
  agent = await home.addAgent({ failure_budget: 1_000 });
  await home.addPolicy({
    bands: [
      { minScore: 1, outcome: "release" },
      { minScore: 0.75, outcome: "partial_release", releasedBps: 2_500 },
      { minScore: 0.5, outcome: "escalate" },
      { minScore: 0, outcome: "refund" },
    ],
  });
  must(await createSession(service.ctx, MACHINE, { agent_id: agent.id, amount_ceiling: "100000" }));
  // With an endpoint, each commit also writes the delivery of its event.
  must(
    await createWebhook(service.ctx, MACHINE, {
      organisation_id: home.id,
      mode: "live",
      url: "http://receiver.example/",
    }),
  );
});
afterEach(async () => {
  hanging.end.resolve();
  await Promise.all(hanging.checks);
  await service.close();
});

const CLAUSES = [0, 1, 2, 3].map((index) => ({ kind: "json.jsonpath", path: `$.c${index}` }));
/** A deliverable of which so many clauses pass. */
const passing = (count: number) =>
  `http://source.example/${encodeURIComponent(
    JSON.stringify(Object.fromEntries([0, 1, 2, 3].slice(0, count).map((index) => [`c${index}`, 1]))),
  )}`;

const opened = (): Promise<Json> =>
  service.opened(home, { agent_id: agent.id, spec: { clauses: CLAUSES } }, { as: agent.as });
const verified = (id: string, clauses: number): Promise<Reply> =>
  service.post(`/v1/warrants/${id}/verify`, { source_url: passing(clauses) }, { as: agent.as });
const stateOf = (id: string) => service.ctx.reader.warrants.find(id)?.state as string;
const allRows = (): AllRows => service.allRows(home);
const countsOf = (...tables: string[]) => tables.map((table) => allRows()[table]?.length);
const audit = () => service.ctx.store.audit();
/**
 * The audit of rows that stay as they are until the test ends, when all of the ledger is audited. That of PostgreSQL copies the ledger,
 * which takes longer than the command and its fault: there it is left to the end.
 */
const auditOfKept = async () => (ENGINE === "postgres" ? [] : audit());

/** A context whose commands on warrants fail, as if the process had ended before them. */
const cutShort = (): Context =>
  withCommands(service.ctx, async ({ needs }, go) => {
    if (needs.warrant !== undefined) throw new Error("cut short");
    return go();
  });

/** A command that is sent several times. */
type Attempt = {
  /** The code of a refusal, or whether it was done or replayed. */
  readonly send: () => Promise<string>;
  readonly state: string;
  readonly current: () => string;
  /** The answer where it was done before. */
  readonly again: "done" | "replayed";
};

/** A request with a key of its own, and the warrant's state after it. */
function requesting(request: (key: string) => Promise<Reply>, state: string, id?: string): Attempt {
  const key = crypto.randomUUID();
  let openedId = "";
  return {
    async send() {
      const reply = await request(key);
      if (reply.code !== null) return reply.code;
      openedId = reply.body.id;
      return reply.headers.get("idempotent-replayed") === "true" ? "replayed" : "done";
    },
    state,
    current: () => stateOf(id ?? openedId),
    again: "replayed",
  };
}

/** A job, which throws, or reports what failed. The second time it finds nothing to do. */
const working = (run: () => Promise<unknown>, state: string, id: string): Attempt => ({
  send: () =>
    run().then(
      () => "done",
      () => "internal_error",
    ),
  state,
  current: () => stateOf(id),
  again: "done",
});

const openAttempt = (body: object, as: TestAgent["as"]): Attempt => {
  const sent = service.body({ spec: { clauses: CLAUSES }, ...body });
  return requesting((key) => service.post("/v1/warrants", sent, { as, key }), "held");
};

const settleAttempt =
  (action: string, body: object | undefined, state: string) => async (): Promise<Attempt> => {
    const { id } = await opened();
    const { as } = home.people.operator;
    return requesting((key) => service.post(`/v1/warrants/${id}/${action}`, body, { as, key }), state, id);
  };

/** A check of a held warrant. */
function verifying(id: string, clauses: number, state: string): Attempt {
  const body = { source_url: passing(clauses) };
  return requesting(
    (key) => service.post(`/v1/warrants/${id}/verify`, body, { as: agent.as, key }),
    state,
    id,
  );
}

/** Checks: how many clauses pass, and the state that the policy leads to. */
const CHECKED = [
  ["released", 4],
  ["partially_released", 3],
  ["escalated", 2],
  ["refunded", 0],
] as const;

/** Resolves an escalation. `disputed`: somebody else has disputed it before. */
const resolveAttempt =
  (decision: Decision, state: string, disputed = false) =>
  async (): Promise<Attempt> => {
    const { id } = await opened();
    expect((await verified(id, 2)).body.state).toBe("escalated");
    const path = `/v1/console/escalations/${id}/resolve`;
    if (disputed) {
      const raised = await service.post(path, { decision: "dispute" }, { as: home.people.operator.as });
      expect(raised.status).toBe(200);
    }
    const body = { decision, ...(decision === "partial_release" && { released_bps: 5_000 }) };
    const { as } = disputed ? home.people.admin : home.people.operator;
    return requesting((key) => service.post(path, body, { as, key }), state, id);
  };

async function expireAttempt(): Promise<Attempt> {
  const { id } = await service.opened(home, { agent_id: agent.id, deadline: service.timeIn(1_000) }, agent);
  service.clock.now += 2_000;
  return working(() => sweepDeadlines(service.ctx, noFault), "expired", id);
}

async function freezeAttempt(): Promise<Attempt> {
  const doomed = await home.addAgent();
  const { id } = await service.opened(home, { agent_id: doomed.id }, doomed);
  const killed = setAgentStatus(cutShort(), MACHINE, { agent_id: doomed.id, status: "killed" });
  expect(await killed.catch(String)).toBe("Error: cut short");
  return working(() => followAgents(service.ctx, noFault), "frozen", id);
}

async function thawAttempt(): Promise<Attempt> {
  const revived = await home.addAgent();
  const { id } = await service.opened(home, { agent_id: revived.id }, revived);
  must(await setAgentStatus(service.ctx, MACHINE, { agent_id: revived.id, status: "killed" }));
  const active = setAgentStatus(cutShort(), MACHINE, { agent_id: revived.id, status: "active" });
  expect(await active.catch(String)).toBe("Error: cut short");
  return working(() => followAgents(service.ctx, noFault), "held", id);
}

/** A warrant whose check waits for its source. */
async function verifyingWarrant(): Promise<string> {
  const { id } = await opened();
  const answers = source;
  const arrived = Promise.withResolvers<void>();
  source = async (...asked) => {
    source = answers;
    arrived.resolve();
    await hanging.end.promise;
    return answers(...asked);
  };
  hanging.checks.push(verified(id, 4));
  await arrived.promise;
  return id;
}

async function interruptAttempt(): Promise<Attempt> {
  const id = await verifyingWarrant();
  const recover = async () => {
    const faults: unknown[] = [];
    await recoverAtStart(service.ctx, (error) => faults.push(error));
    if (faults.length > 0) throw faults[0];
  };
  return working(recover, "held", id);
}

/** A deposit has no key: whoever got an error looks at the balance first. */
async function depositAttempt(): Promise<Attempt> {
  const { available } = service.balance(home);
  const current = () => String(service.balance(home).available - available);
  const fund = () =>
    fundBalance(service.ctx, MACHINE, { organisation_id: home.id, mode: "live", amount: "500" });
  return {
    send: async () => (current() === "500" ? "replayed" : doing(fund)),
    state: "500",
    current,
    again: "replayed",
  };
}

/** A verb of the command line: it is done, fails, or is refused with a code. */
const doing = (verb: () => Promise<object>): Promise<string> =>
  verb().then(
    (answer) => (isRefusal(answer) ? answer.refused : "done"),
    () => "internal_error",
  );

/** A verify after the deadline expires the warrant, and is refused. */
async function lateCheckAttempt(): Promise<Attempt> {
  const { id } = await service.opened(home, { agent_id: agent.id, deadline: service.timeIn(1_000) }, agent);
  service.clock.now += 2_000;
  const { send, ...attempt } = verifying(id, 4, "expired");
  const refused = async () => ((await send()) === "illegal_transition" ? "done" : "internal_error");
  return { ...attempt, send: refused, again: "done" };
}

const pay = (key: string): Promise<Reply> =>
  service.post(
    "/v1/x402/pay",
    { url: SELLER_URL, max_amount: "1000", spec: PAID_SPEC },
    { as: home.sandbox.as, key },
  );
const PAID_SPEC = { clauses: [{ kind: "json.jsonpath", path: "$.ok", equals: true }] };

/** A purchase whose payment is not known, long after its authorization has expired. */
async function unknownPayment(finding: Finding): Promise<Json> {
  market.first = asksExact("100");
  market.paid = () => silence(true);
  market.findings = [finding];
  const { body } = await pay(crypto.randomUUID());
  expect(body.reason_codes).toContain("payment_unknown");
  service.clock.now += 120_000;
  const [purchase] = service.ctx.reader.purchases.list(sandbox(), null, 1);
  return { warrantId: body.warrant_id, purchaseId: purchase!.id };
}
const sandbox = () => ({ organisationId: home.id, mode: "sandbox" as const });

async function reconcileAttempt(): Promise<Attempt> {
  const { warrantId } = await unknownPayment("open");
  market.findings = ["expired"];
  return working(() => reconcilePurchases(service.ctx, noFault, noContradiction), "refunded", warrantId);
}

/** After so long a person may say what became of a payment. */
const ATTESTABLE_MS = 2 * 3_600_000;

const resolvePaymentAttempt = (known: "paid" | "unpaid", state: string) => async (): Promise<Attempt> => {
  const { warrantId, purchaseId } = await unknownPayment("none");
  service.clock.now += ATTESTABLE_MS;
  const resolve = () =>
    doing(() => resolvePurchase(service.ctx, MACHINE, { purchase_id: purchaseId, known }));
  return {
    send: async () => (await resolve()).replace("illegal_transition", "replayed"),
    state: `${known} ${state}`,
    current: () => `${service.ctx.reader.purchases.get(purchaseId)?.known} ${stateOf(warrantId)}`,
    again: "replayed",
  };
};

type Command = readonly [name: string, attempt: () => Promise<Attempt>];

const COMMANDS: readonly Command[] = [
  ["open", async () => openAttempt({}, home.live.as)],
  ["open under a spend session", async () => openAttempt({ agent_id: agent.id }, agent.as)],
  ["release", settleAttempt("release", undefined, "released")],
  ["partial release", settleAttempt("partial", { released_bps: 5_000 }, "partially_released")],
  ["refund", settleAttempt("refund", undefined, "refunded")],
  ["resolve: release", resolveAttempt("release", "released")],
  ["resolve: partial release", resolveAttempt("partial_release", "partially_released")],
  ["resolve: refund", resolveAttempt("refund", "refunded")],
  ["dispute", resolveAttempt("dispute", "disputed")],
  ["resolve a dispute: release", resolveAttempt("release", "released", true)],
  ["resolve a dispute: partial release", resolveAttempt("partial_release", "partially_released", true)],
  ["resolve a dispute: refund", resolveAttempt("refund", "refunded", true)],
  ["deposit", depositAttempt],
  ["expire", expireAttempt],
  ["expire by a late check", lateCheckAttempt],
  ["freeze", freezeAttempt],
  ["thaw", thawAttempt],
  ["interrupt a check", interruptAttempt],
  ["reconcile an x402 payment", reconcileAttempt],
  ["x402 resolve: unpaid", resolvePaymentAttempt("unpaid", "refunded")],
  ["x402 resolve: paid", resolvePaymentAttempt("paid", "escalated")],
];

const atEvery = (fault: Where, each: Each): Promise<void> => strikeEvery(statements, fault, each);

/** What happened to the command when a statement failed, and to the same command sent again. */
async function onceInTheEnd(
  { send, state, current, again }: Attempt,
  fault: Fault,
  undone: () => void,
): Promise<string | null> {
  const before = allRows();
  const { result, sql } = await statements.during(fault, send);
  if (sql === null) {
    expect([result, current(), await auditOfKept()]).toEqual(["done", state, []]);
    return null;
  }
  const isKept = isDone(fault, sql) || fault.transaction === 1;
  expect([sql, result, await (isKept ? auditOfKept() : audit())]).toEqual([sql, answerOf(fault), []]);
  if (isDone(fault, sql)) {
    // Who sends the request again gets what was done.
    const after = allRows();
    expect(after).not.toEqual(before);
    expect(await send()).toBe(again);
    expect(allRows()).toEqual(after);
  } else {
    if (fault.transaction === 1) expect(allRows()).toEqual(before);
    undone();
    expect(await send()).toBe("done");
  }
  expect([current(), await auditOfKept()]).toEqual([state, []]);
  return sql;
}

/** The commits of a check: its beginning, its capsule, its end. */
const CHECK_END = 3;

describe(`a fault at ${EVERY}`, () => {
  test.each(COMMANDS)(
    "in %s: nothing or all of it is done, and in the end once",
    async (_, prepare) => {
      await atEvery({ transaction: 1 }, async (fault) => onceInTheEnd(await prepare(), fault, () => {}));
    },
    TEST_MS,
  );

  test.each(CHECKED)(
    "at the end of a check, %s: it is interrupted or decided, and in the end decided once",
    async (state, clauses) => {
      await atEvery({ transaction: CHECK_END }, async (fault) => {
        const { id } = await opened();
        const balance = service.balance(home);
        const rows = countsOf("checks", "escalations", "idempotency_keys");
        return onceInTheEnd(verifying(id, clauses, state), fault, () => {
          expect(service.ctx.reader.warrants.find(id)).toMatchObject({ state: "held", version: 3 });
          expect(service.balance(home)).toEqual(balance);
          expect(countsOf("checks", "escalations", "idempotency_keys")).toEqual(rows);
        });
      });
    },
    TEST_MS,
  );

  test(
    "of a check's capsule: it is decided all the same, and in the end its capsule is there or not",
    async () => {
      await atEvery({ transaction: CHECK_END - 1 }, async (fault) => {
        const { id } = await opened();
        const [capsules = 0] = countsOf("capsules");
        const { send, current } = verifying(id, 4, "released");
        const { result, sql } = await statements.during(fault, send);
        const isKept = sql === null || isDone(fault, sql);
        expect([sql, result, current(), await auditOfKept()]).toEqual([sql, "done", "released", []]);
        expect(countsOf("capsules")).toEqual([capsules + (isKept ? 1 : 0)]);
        expect(await send()).toBe("replayed");
        return sql;
      });
    },
    TEST_MS,
  );

  test(
    "at the beginning of a check: it has not begun, or recovery undoes it",
    async () => {
      await atEvery({ transaction: 1 }, async (fault) => {
        const { id } = await opened();
        const before = allRows();
        const { send, current } = verifying(id, 4, "released");
        const { result, sql } = await statements.during(fault, send);
        if (sql === null) return null;
        expect([result, await audit()]).toEqual([answerOf(fault), []]);
        if (result === "done") {
          expect([await send(), current()]).toEqual(["replayed", "released"]);
          return sql;
        }
        if (isDone(fault, sql)) {
          expect([current(), await send()]).toEqual(["verifying", "idempotency_in_flight"]);
          service.clock.now += CHECK_LEASE_MS;
          expect(await recoverOverdueChecks(service.ctx, () => {})).toBe(1);
          expect(current()).toBe("held");
        } else {
          expect(allRows()).toEqual(before);
        }
        expect([await send(), current(), await auditOfKept()]).toEqual(["done", "released", []]);
        return sql;
      });
    },
    TEST_MS,
  );

  test(
    "once, among commands of one batch: all of them are done, once",
    async () => {
      await atEvery({ transaction: 1 }, async (fault) => {
        const attempts = await Promise.all([
          openAttempt({}, home.live.as),
          settleAttempt("release", undefined, "released")(),
          openAttempt({ agent_id: agent.id }, agent.as),
          settleAttempt("partial", { released_bps: 100 }, "partially_released")(),
        ]);
        const { available, held, paid } = service.balance(home);
        const { result, sql } = await statements.during(fault, () =>
          together(...attempts.map(({ send }) => send)),
        );
        if (ENGINE === "embedded" && sql === BEGIN) {
          expect([...new Set(result), service.balance(home)]).toEqual([
            "internal_error",
            { available, held, paid },
          ]);
          await Promise.all(attempts.map(({ send }) => send()));
          return sql;
        }
        const replayed = ENGINE === "embedded" && sql === "COMMIT" && fault.when === "after";
        expect(result).toEqual(attempts.map(() => (replayed ? "replayed" : "done")));
        expect(attempts.map(({ current }) => current())).toEqual(attempts.map(({ state }) => state));
        // Two holds of 100 were made. One was paid whole, and one unit of the other.
        expect(service.balance(home)).toEqual({ available: available - 101n, held, paid: paid + 101n });
        expect(await auditOfKept()).toEqual([]);
        return sql;
      });
    },
    TEST_MS,
  );
});

const ANSWER = 4;

/** The commits of a purchase, by number, and the final state after a fault in each, where it is always the same. */
const PURCHASED: readonly (readonly [
  name: string,
  transaction: number,
  paid: PaidAnswer,
  state: string | null,
])[] = [
  ["begin", 1, delivers({ ok: true }), null],
  ["hold", 2, delivers({ ok: true }), null],
  ["voucher", 3, delivers({ ok: true }), null],
  ["answer", ANSWER, delivers({ ok: true }), null],
  ["settlement's beginning", 5, delivers({ ok: true }), "released"],
  ["settle: release", 7, delivers({ ok: true }), "released"],
  ["settle: refund", 7, delivers({ ok: false }), "refunded"],
  ["settle: refund, unreached", 5, silence(false), "refunded"],
];

test.each(PURCHASED)(
  `a fault at ${EVERY} of an x402 purchase's %s: recovery ends it, its key is answered, and it is paid once`,
  async (_, transaction, paid, state) => {
    // The first voucher writes the instance's row, in a commit of its own.
    market.paid = () => paid;
    await atEvery({ transaction }, async (fault) => {
      const key = crypto.randomUUID();
      const before = service.balance(home, "sandbox");
      market.sent.length = 0;
      const { result, sql } = await statements.during(fault, () => pay(key));
      expect(await audit()).toEqual([]);
      if (sql === null) {
        expect(result.status).toBe(200);
        return null;
      }
      // The answer is stored at the next try: the seller cannot be asked for it twice.
      const isTold = transaction === ANSWER || answerOf(fault) === "done";
      expect([sql, result.code]).toEqual([sql, isTold ? null : "internal_error"]);
      await recoverPurchases(service.ctx, noFault);
      const reply = await pay(key);
      expect([sql, reply.status]).toEqual([sql, 200]);
      expect(["released", "refunded", "escalated"]).toContain(reply.body.state);
      if (state !== null) expect([sql, reply.body.state]).toEqual([sql, state]);
      expect((await pay(key)).text).toBe(reply.text);
      expect(market.sent.length).toBeLessThanOrEqual(1);
      const took = reply.body.state === "released" ? 100n : 0n;
      const waits = reply.body.state === "escalated" ? 100n : 0n;
      expect(service.balance(home, "sandbox")).toEqual({
        available: before.available - took - waits,
        held: before.held + waits,
        paid: before.paid + took,
      });
      expect([service.ctx.reader.purchases.unfinished("", 1), await auditOfKept()]).toEqual([[], []]);
      return sql;
    });
  },
  TEST_MS,
);

test(
  "a check whose end and whose interruption both fail is undone when its lease has run out",
  async () => {
    await atEvery({ transaction: 2, lasts: true }, async (fault) => {
      const { id } = await opened();
      const { send, current } = verifying(id, 4, "released");
      const { result, sql } = await statements.during(fault, send);
      if (sql === null) return null;
      expect([sql, result, current(), await audit()]).toEqual([sql, "internal_error", "verifying", []]);
      expect(await send()).toBe("idempotency_in_flight");
      service.clock.now += CHECK_LEASE_MS;
      expect(await recoverOverdueChecks(service.ctx, () => {})).toBe(1);
      expect([await send(), current(), await auditOfKept()]).toEqual(["done", "released", []]);
      return sql;
    });
  },
  TEST_MS,
);

test("a command on disk is answered although a read beside it cannot be ended, and reads go on", async () => {
  const { reader, store } = service.ctx;
  const { send, state, current } = openAttempt({}, home.live.as);
  const read = () => store.read(({ organisations }) => organisations.list());
  const { result, sql } = await statements.whileReading("COMMIT", async () => {
    const [answer] = await Promise.all([send(), read()]);
    return answer;
  });
  expect([sql, result, current()]).toEqual(["COMMIT", "done", state]);
  expect(reader.warrants.countsByState()).toEqual({ held: 1 });
  // Whichever connections they get.
  const organisations = await read();
  for (let reads = 0; reads < 20; reads++) expect(await read()).toEqual(organisations);
  expect(await send()).toBe("replayed");
});
