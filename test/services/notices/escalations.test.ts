import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { setAgentStatus } from "../../../src/services/admin/agents.ts";
import { MACHINE } from "../../../src/services/admin/authority.ts";
import { removeUser, setUserRole } from "../../../src/services/admin/users.ts";
import { noticePlanner } from "../../../src/services/notices/plan.ts";
import { chooseNotices, type NoticeChoice } from "../../../src/services/notices/settings.ts";
import { resolveEscalation } from "../../../src/services/warrants/resolve.ts";
import { createTestContext, type TestContext } from "../../support/context.ts";
import {
  createCaller,
  createStage,
  idempotencyOf,
  must,
  NONE_PASS,
  open,
  SCRIPTED,
  type Stage,
  settle,
  verify,
  warrantIn,
} from "../../support/stage.ts";
import { createTelling } from "../../support/telling.ts";

/** Who hears of an escalation, when and how often (docs/notices, "Notices"). */

const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

let ctx: TestContext;
let stage: Stage;
let telling: ReturnType<typeof createTelling>;
let plan: ReturnType<typeof noticePlanner>;
beforeEach(async () => {
  telling = createTelling();
  ctx = createTestContext({ ...SCRIPTED, notices: telling.notices });
  stage = await createStage(ctx);
  plan = noticePlanner(ctx, () => ctx.clock.now);
});
afterEach(() => ctx.close());

const emailOf = (userId: string) => ctx.reader.users.get(userId)?.email ?? "";
const people = () => [stage.operator, stage.admin, stage.owner].map(({ userId }) => emailOf(userId)).sort();

/** One run of the job: what it sent. */
async function tell(now: number | null = ctx.now()) {
  await plan(now);
  for (let round = 0; round < 5; round++) await telling.deliver(ctx);
  return telling.sent();
}

async function escalated(of = stage): Promise<string> {
  const deadline = new Date(ctx.now() + 30 * DAY_MS).toISOString();
  const { id } = warrantIn(await open(of, of.operator, { deadline }));
  expect(warrantIn(await verify(of, of.operator, id, NONE_PASS)).state).toBe("escalated");
  return id;
}

const choose = (who: Stage["operator"], choice: Partial<NoticeChoice>) =>
  chooseNotices(ctx, who, {
    channels: {},
    sandbox: true,
    from: "",
    until: "",
    timeZone: "UTC",
    ...choice,
  }).then(must);

describe("an escalation", () => {
  test("is told at once to everybody who may decide it, with what is held and why, and a link", async () => {
    const id = await escalated();
    const [escalation] = ctx.reader.escalations.list(stage, 1);
    const mails = await tell();
    expect(mails.map(({ to }) => to).sort()).toEqual(people());
    for (const { subject, text } of mails) {
      expect(subject).toBe("0.0001 USDC waits for your decision");
      expect(text).toContain(`0.0001 USDC to acme (${id})`);
      expect(text).toContain("Why: path_not_found.");
      expect(text).toContain(`http://localhost:8080/console/escalations/${escalation!.id}\n`);
    }
    // Each person is told once.
    expect(await tell()).toEqual([]);
    expect(ctx.reader.notices.ofUser(stage.admin.userId, 9)).toMatchObject([
      {
        status: "delivered",
        attempts: 1,
        answer: "250 ok",
        durationMs: 3,
        channel: "email",
        claimedUntil: null,
      },
    ]);
  });

  test("is reminded of after 24 and 72 hours, while it waits", async () => {
    await escalated();
    await tell();
    const raisedAt = ctx.now();
    const hours: [number, string][] = [];
    for (let hour = 1; hour <= 200; hour++) {
      ctx.clock.now = raisedAt + hour * HOUR_MS;
      for (const { subject } of (await tell()).slice(0, 1)) hours.push([hour, subject]);
    }
    expect(hours).toEqual([
      [24, "0.0001 USDC waits for your decision for 24 hours"],
      [72, "0.0001 USDC waits for your decision for 72 hours"],
    ]);
    expect(ctx.reader.notices.nextPlanAt()).toBeNull();
  });

  test("that was decided is not spoken of any more: neither later, nor where the mail has not gone out yet", async () => {
    const id = await escalated();
    await plan(ctx.now());
    must(await settle(stage, stage.operator, id, "refund"));
    await telling.deliver(ctx);
    expect(telling.sent()).toEqual([]);
    expect(ctx.reader.notices.ofUser(stage.admin.userId, 9)).toMatchObject([
      { status: "dropped", attempts: 0 },
    ]);
    ctx.clock.now += 2 * DAY_MS;
    expect(await tell()).toEqual([]);
    expect(ctx.reader.notices.nextPlanAt()).toBeNull();
  });

  test("that was decided before anybody was told is told to nobody", async () => {
    const id = await escalated();
    must(await settle(stage, stage.operator, id, "refund"));
    expect([await plan(ctx.now()), ctx.reader.notices.nextPlanAt()]).toEqual([0, null]);
  });

  test("of a killed agent is told too", async () => {
    const key = await createCaller(stage);
    warrantIn(await open(stage, key));
    must(await setAgentStatus(ctx, MACHINE, { agent_id: key.agentId, status: "killed" }));
    const [mail] = await tell();
    expect(mail?.text).toContain("Why: agent_killed.");
  });

  test("raised while the clock is wrong is told at once, and no reminder of others is made then", async () => {
    await escalated();
    await tell();
    ctx.clock.now += 3 * DAY_MS;
    expect(await tell(null)).toEqual([]);
    await escalated();
    expect((await tell(null)).map(({ subject }) => subject)).toEqual(
      Array(3).fill("0.0001 USDC waits for your decision"),
    );
  });
});

describe("a dispute", () => {
  const dispute = async (id: string, by = stage.operator) => {
    const input = {
      id,
      decision: "dispute",
      releasedBps: null,
      note: "The source is wrong",
      ifMatch: null,
    } as const;
    must(await resolveEscalation(ctx, by, input, idempotencyOf()));
    // What is raised within five minutes of a notice is gathered.
    ctx.clock.now += 5 * MINUTE_MS;
  };
  const others = () => [stage.admin, stage.owner].map(({ userId }) => emailOf(userId)).sort();

  test("is told to admins and owners, with who raised it and what they noted", async () => {
    const id = await escalated();
    await tell();
    await dispute(id);
    const mails = await tell();
    expect(mails.map(({ to }) => to).sort()).toEqual(others());
    expect(mails[0]?.subject).toBe("0.0001 USDC is disputed, and waits for you as a second person");
    const name = ctx.reader.users.get(stage.operator.userId)?.name;
    expect(mails[0]?.text).toContain(`${name} disputed it: The source is wrong\n`);
    expect(mails[0]?.text).toContain("until an admin or owner other than them decides.");
    expect(await tell()).toEqual([]);
  });

  test("is not told to who raised it, be it an admin; of another's they hear", async () => {
    await dispute(await escalated(), stage.admin);
    expect((await tell()).map(({ to }) => to)).toEqual([emailOf(stage.owner.userId)]);
    await dispute(await escalated(), stage.owner);
    await dispute(await escalated(), stage.admin);
    const mails = await tell();
    expect(mails.map(({ to, subject }) => [to, subject.split(",")[0]]).sort()).toEqual(
      others().map((to) => [to, "0.0001 USDC is disputed"]),
    );
  });

  test("before anybody was told of the escalation is told as a dispute alone", async () => {
    await dispute(await escalated());
    const mails = await tell();
    expect(mails.map(({ to }) => to).sort()).toEqual(others());
    expect(mails[0]?.subject).toContain("is disputed");
  });

  test("takes back what was about to be told to those who may not decide it", async () => {
    const id = await escalated();
    await plan(ctx.now());
    await dispute(id);
    const subjects = (await tell()).map(({ subject }) => subject);
    expect(subjects).toEqual(Array(2).fill(expect.stringContaining("is disputed")));
  });

  test("is reminded of 24 and 72 hours after it was raised, however long the escalation had waited", async () => {
    const id = await escalated();
    ctx.clock.now += 4 * DAY_MS;
    await tell();
    expect(ctx.reader.notices.nextPlanAt()).toBeNull();
    const raisedAt = ctx.now();
    await dispute(id);
    await tell();
    const hours: [number, string][] = [];
    for (let hour = 1; hour <= 100; hour++) {
      ctx.clock.now = raisedAt + hour * HOUR_MS;
      for (const { subject } of (await tell()).slice(0, 1)) hours.push([hour, subject]);
    }
    expect(hours).toEqual([
      [24, "0.0001 USDC is disputed, and waits for you as a second person for 24 hours"],
      [72, "0.0001 USDC is disputed, and waits for you as a second person for 72 hours"],
    ]);
    await resolveEscalation(
      ctx,
      stage.owner,
      { id, decision: "refund", releasedBps: null, note: null, ifMatch: null },
      idempotencyOf(),
    );
    expect(ctx.reader.notices.nextPlanAt()).toBeNull();
  });

  test("that was decided is not spoken of any more, and several are one notice", async () => {
    const ids = [await escalated(), await escalated(), await escalated()];
    await tell();
    for (const id of ids) await dispute(id);
    await plan(ctx.now());
    const input = { decision: "refund", releasedBps: null, note: null, ifMatch: null } as const;
    must(await resolveEscalation(ctx, stage.owner, { id: ids[0] ?? "", ...input }, idempotencyOf()));
    await telling.deliver(ctx);
    expect(telling.sent().map(({ subject }) => subject)).toEqual(
      Array(2).fill("2 disputes wait for a second person"),
    );
  });
});

describe("a flood of escalations", () => {
  test("is one notice, and what follows is gathered for five minutes", async () => {
    for (let count = 0; count < 12; count++) await escalated();
    const mails = await tell();
    expect(mails).toHaveLength(3);
    expect(mails[0]?.subject).toBe("12 escalations wait for a decision");
    expect(mails[0]?.text).toContain("And 2 more");
    expect(mails[0]?.text).toContain("/console/escalations\n");
    await escalated();
    await escalated();
    ctx.clock.now += 5 * MINUTE_MS - 1;
    expect(await tell()).toEqual([]);
    ctx.clock.now += 1;
    expect((await tell()).map(({ subject }) => subject)).toEqual(
      Array(3).fill("2 escalations wait for a decision"),
    );
  });

  test("of more than one commit plans is one notice too", async () => {
    for (let count = 0; count < 120; count++) await escalated();
    const mails = await tell();
    expect(mails.map(({ subject }) => subject)).toEqual(Array(3).fill("120 escalations wait for a decision"));
    expect(mails[0]?.text).toContain("And 110 more");
    expect(ctx.reader.notices.plannedCount(stage, ctx.now())).toBe(0);
  });

  test("of one organisation does not delay another's", async () => {
    await escalated();
    await tell();
    const other = await createStage(ctx);
    await escalated();
    await escalated(other);
    expect((await tell()).map(({ to }) => to)).toContain(emailOf(other.operator.userId));
  });
});

describe("a person", () => {
  test("hears nothing outside their hours, and then all that still waits", async () => {
    // It is noon.
    await choose(stage.operator, { from: "14:00", until: "15:00" });
    await escalated();
    expect((await tell()).map(({ to }) => to)).not.toContain(emailOf(stage.operator.userId));
    // So it is not looked at again before.
    expect(ctx.reader.notices.ofUser(stage.operator.userId, 1)).toMatchObject([
      { status: "pending", nextAttemptAt: ctx.clock.now + 2 * HOUR_MS },
    ]);
    ctx.clock.now += 2 * HOUR_MS - 1;
    expect(await tell()).toEqual([]);
    ctx.clock.now += 1;
    expect((await tell()).map(({ to }) => to)).toEqual([emailOf(stage.operator.userId)]);
  });

  test("who chose no mail gets none, also where they chose it after the notice was made", async () => {
    await choose(stage.operator, { channels: { email: false } });
    await escalated();
    await plan(ctx.now());
    await choose(stage.admin, { channels: { email: false } });
    await telling.deliver(ctx);
    expect(telling.sent().map(({ to }) => to)).toEqual([emailOf(stage.owner.userId)]);
  });

  test("who may not decide hears nothing: a viewer, and who was demoted or removed meanwhile", async () => {
    await escalated();
    await plan(ctx.now());
    must(await setUserRole(ctx, MACHINE, { user_id: stage.operator.userId, role: "viewer" }));
    must(await removeUser(ctx, MACHINE, { user_id: stage.admin.userId }));
    await telling.deliver(ctx);
    expect(telling.sent().map(({ to }) => to)).toEqual([emailOf(stage.owner.userId)]);
    await escalated({ ...stage, operator: stage.owner });
    ctx.clock.now += 5 * MINUTE_MS;
    expect((await tell()).map(({ to }) => to)).toEqual([emailOf(stage.owner.userId)]);
    // The first notice was made for them while they were an operator; no other was.
    expect(ctx.reader.notices.ofUser(stage.operator.userId, 9)).toMatchObject([{ status: "dropped" }]);
  });

  test("who was signed out meanwhile chooses nothing", async () => {
    const choice = { channels: { email: false }, sandbox: true, from: "", until: "", timeZone: "UTC" };
    const gone = { ...stage.operator, signInHash: "ended" };
    expect(await chooseNotices(ctx, gone, choice)).toMatchObject({ refused: "not_authenticated" });
    expect(ctx.reader.notices.settingsOf(stage.operator.userId)).toBeNull();
  });

  test("hears of the sandbox unless they chose not to, and its mails say so", async () => {
    const sandbox = await createStage(ctx, { mode: "sandbox" });
    await choose(sandbox.admin, { sandbox: false });
    await escalated(sandbox);
    const mails = await tell();
    expect(mails.map(({ to }) => to).sort()).toEqual(
      [sandbox.operator, sandbox.owner].map(({ userId }) => emailOf(userId)).sort(),
    );
    expect(mails[0]?.subject).toBe("SANDBOX: 0.0001 USDC waits for your decision");
  });
});

describe("a mail that is not taken", () => {
  test("is sent again by its schedule, with the same id", async () => {
    const busy = { outcome: "failed", answer: "421 busy", durationMs: 1 } as const;
    await escalated();
    telling.answer(busy, busy, busy);
    const first = await tell();
    expect(first).toHaveLength(3);
    ctx.clock.now += MINUTE_MS - 1;
    expect(await tell()).toEqual([]);
    ctx.clock.now += 1;
    const second = await tell();
    expect(second.map(({ id }) => id).sort()).toEqual(first.map(({ id }) => id).sort());
    expect(ctx.reader.notices.ofUser(stage.owner.userId, 1)).toMatchObject([
      { attempts: 2, status: "delivered" },
    ]);
  });

  test("for good is not sent again", async () => {
    await choose(stage.operator, { channels: { email: false } });
    await choose(stage.admin, { channels: { email: false } });
    await escalated();
    telling.answer({ outcome: "never", answer: "550 no such box", durationMs: 1 });
    await tell();
    ctx.clock.now += DAY_MS - 1;
    expect(await tell()).toEqual([]);
    expect(ctx.reader.notices.ofUser(stage.owner.userId, 1)).toMatchObject([
      { status: "exhausted", answer: "550 no such box", nextAttemptAt: null },
    ]);
  });
});

test("without a mail server nothing is kept and nothing waits", async () => {
  const none = createTestContext(SCRIPTED);
  try {
    const there = await createStage(none);
    const { id } = warrantIn(await open(there, there.operator));
    await verify(there, there.operator, id, NONE_PASS);
    expect(await noticePlanner(none, () => 0)(none.now())).toBe(0);
    expect(none.reader.notices.ofUser(there.owner.userId, 9)).toEqual([]);
  } finally {
    await none.close();
  }
});
