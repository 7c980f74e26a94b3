import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { signInIdOf } from "../../../src/core/auth-session.ts";
import { isRefusal } from "../../../src/core/errors.ts";
import type { PersonCaller } from "../../../src/core/roles.ts";
import { MACHINE } from "../../../src/services/admin/authority.ts";
import { endSignInsOf } from "../../../src/services/admin/sign-ins.ts";
import { createUser, removeUser } from "../../../src/services/admin/users.ts";
import { signOutEverywhere } from "../../../src/services/auth/sign-in.ts";
import { deliverNotices } from "../../../src/services/notices/deliver.ts";
import { addDevice, removeDevice } from "../../../src/services/notices/devices.ts";
import { noticePlanner } from "../../../src/services/notices/plan.ts";
import { chooseNotices } from "../../../src/services/notices/settings.ts";
import { makeTestNotice } from "../../../src/services/notices/test-notice.ts";
import { tellOfTrouble } from "../../../src/services/notices/trouble.ts";
import { tellingBy } from "../../support/channels.ts";
import { createTestContext, type TestContext } from "../../support/context.ts";
import { type Browser, CONTACT, newBrowser, pushing } from "../../support/devices.ts";
import { noFault } from "../../support/no-fault.ts";
import { type PushService, startPushService } from "../../support/push-service.ts";
import {
  createStage,
  fresh,
  must,
  NONE_PASS,
  open,
  SCRIPTED,
  type Stage,
  settle,
  verify,
  warrantIn,
} from "../../support/stage.ts";
import { attemptsOf, createTelling } from "../../support/telling.ts";

/** Notices by web push, to a push service that checks what it gets (docs/notices, "Web push"). */

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
const CLIENT = { address: "192.0.2.1", network: "192.0.2.1", agent: "Firefox/128" };

let ctx: TestContext;
let stage: Stage;
let service: PushService;
let telling: ReturnType<typeof createTelling>;
let plan: ReturnType<typeof noticePlanner>;
beforeEach(async () => {
  service = startPushService(() => ctx.now());
  telling = createTelling();
  ctx = createTestContext({ ...SCRIPTED, notices: tellingBy({ push: pushing(() => ctx) }) });
  stage = await createStage(ctx);
  plan = noticePlanner(ctx, () => ctx.clock.now);
});
afterEach(async () => {
  service.stop();
  await ctx.close();
});

const added = async (who: PersonCaller, browser: Browser = service.subscribe(), name = "Laptop") => {
  const { endpoint, p256dh, auth } = browser;
  const { id } = must(await addDevice(ctx, who, { endpoint, p256dh, auth, name }));
  return { ...browser, id };
};
const devicesOf = ({ userId }: PersonCaller) =>
  ctx.reader.notices.pushSubscriptionsOf(userId).map(({ id }) => id);
const noticesTo = ({ userId }: PersonCaller) => ctx.reader.notices.ofUser(userId, 20);
const entries = () =>
  ctx.reader.auditEntries
    .list(stage.organisationId, null, 50)
    .filter(({ action }) => action === "push_devices.changed");

/** Makes the attempts that are due. */
async function deliver() {
  for (let round = 0; round < 3; round++) {
    await deliverNotices(ctx, noFault);
    await attemptsOf(ctx.notices);
  }
  expect(service.refused()).toEqual([]);
  return service.received();
}

async function tell() {
  await plan(ctx.now());
  return deliver();
}

async function escalated(): Promise<string> {
  const deadline = new Date(ctx.now() + 30 * DAY_MS).toISOString();
  const { id } = warrantIn(await open(stage, stage.operator, { deadline }));
  expect(warrantIn(await verify(stage, stage.operator, id, NONE_PASS)).state).toBe("escalated");
  return id;
}

describe("an escalation", () => {
  test("is pushed to all devices of who may decide it, encrypted, signed and with a link to it", async () => {
    const [laptop, phone] = [await added(stage.operator), await added(stage.operator)];
    const admins = await added(stage.admin);
    const id = await escalated();
    const [escalation] = ctx.reader.escalations.list(stage, 1);
    const pushed = await tell();
    expect(pushed.map(({ endpoint }) => endpoint).sort()).toEqual(
      [laptop, phone, admins].map(({ endpoint }) => endpoint).sort(),
    );
    for (const { message, headers, claims, key } of pushed) {
      expect(message).toEqual({
        tag: expect.stringMatching(/^ntc_/),
        title: "0.0001 USDC waits for your decision",
        link: `http://localhost:8080/console/escalations/${escalation!.id}`,
        body: `0.0001 USDC to acme (${id})\nWhy: path_not_found. The amount stays held until a person decides.`,
      });
      expect(headers).toEqual({ ttl: "86400", urgency: "high", topic: message.tag });
      expect(claims).toEqual({
        ...{ aud: service.origin, sub: CONTACT },
        exp: Math.floor((ctx.now() + 12 * HOUR_MS) / 1_000),
      });
      expect(key).toBe(ctx.webPush.publicKey);
    }
    expect(noticesTo(stage.operator)).toMatchObject([
      { channel: "push", status: "delivered", attempts: 1, answer: "2 of 2 took it: 201, 201" },
    ]);
    const reached = ctx.reader.notices.pushSubscriptionsOf(stage.operator.userId);
    expect(reached.map(({ deliveredAt }) => deliveredAt)).toEqual([ctx.now(), ctx.now()]);
    expect(noticesTo(stage.owner)).toEqual([]);
  });

  test("is pushed to nobody who chose no push, or removed the device meanwhile", async () => {
    await added(stage.operator);
    const { id } = await added(stage.admin);
    must(
      await chooseNotices(ctx, stage.operator, {
        channels: { push: false },
        ...{ sandbox: true, from: "", until: "", timeZone: "UTC" },
      }),
    );
    await escalated();
    await plan(ctx.now());
    must(await removeDevice(ctx, stage.admin, id));
    expect(await deliver()).toEqual([]);
    expect(noticesTo(stage.operator)).toEqual([]);
    expect(noticesTo(stage.admin)).toMatchObject([{ status: "dropped", attempts: 0 }]);
  });
});

test("what is no decision is of normal urgency, and a long text is cut between characters", async () => {
  await added(stage.admin);
  expect(await tellOfTrouble(ctx, [{ name: "disk", message: `x${"🙂".repeat(3_000)}` }])).toBe(1);
  const [pushed, ...others] = await deliver();
  expect(others).toEqual([]);
  expect(pushed?.headers).toMatchObject({ urgency: "normal" });
  expect(pushed?.message.body).toBe(`x${"🙂".repeat(299)}\ufffd`);
});

test("of trouble twenty people of an organisation hear, each by every channel", async () => {
  const organisation = { organisation_id: stage.organisationId, role: "admin" } as const;
  const password = "correct horse battery staple";
  const people = [];
  for (let count = 0; count < 20; count++) {
    const email = `${fresh("admin")}@example.com`;
    people.push(must(await createUser(ctx, MACHINE, { ...organisation, email, password })).id);
  }
  const put = [...people, stage.admin.userId, stage.owner.userId].map((userId, index) => {
    const { endpoint, p256dh } = newBrowser();
    const row = {
      ...{ id: `psh_${index}`, organisationId: stage.organisationId, userId, endpoint, p256dh },
      ...{ encryptedAuth: "", name: "Laptop", createdAt: 0, deliveredAt: null },
    };
    return { kind: "pushSubscription", before: null, row } as const;
  });
  await ctx.store.execute({ scope: stage, needs: {}, decide: () => ({ answer: null, change: { put } }) });
  const both = { ...ctx, notices: tellingBy({ email: telling.email, push: pushing(() => ctx) }) };
  expect(await tellOfTrouble(both, [{ name: "disk", message: "full" }])).toBe(40);
});

describe("a device that its push service no longer knows", () => {
  test("is forgotten, the others are told, and the audit log has it", async () => {
    const [laptop, phone] = [await added(stage.operator), await added(stage.operator)];
    service.unsubscribe(laptop);
    await escalated();
    expect((await tell()).map(({ endpoint }) => endpoint)).toEqual([phone.endpoint]);
    expect(devicesOf(stage.operator)).toEqual([phone.id]);
    expect(noticesTo(stage.operator)).toMatchObject([
      { status: "delivered", answer: "1 of 2 took it: 410, 201" },
    ]);
    const { operator } = stage;
    expect(entries()[0]).toMatchObject({
      ...{ subject: operator.userId, actor: { kind: "user", id: operator.userId } },
      before: { devices: [{ id: laptop.id, name: "Laptop", push_service: service.origin }] },
      after: { devices: [] },
    });
  });

  test("is not tried again where it was the only one", async () => {
    await added(stage.operator, newBrowser(service.origin));
    await escalated();
    expect(await tell()).toEqual([]);
    expect(devicesOf(stage.operator)).toEqual([]);
    expect(noticesTo(stage.operator)).toMatchObject([
      { status: "exhausted", attempts: 1, answer: "gone", nextAttemptAt: null },
    ]);
  });
});

describe("a push service", () => {
  test("that fails is asked again as the schedule says, and what it says besides the status is not kept", async () => {
    const { endpoint } = await added(stage.operator);
    service.answer(() => new Response(`busy at ${endpoint}`, { status: 503 }));
    await escalated();
    expect(await tell()).toEqual([]);
    const [failed] = noticesTo(stage.operator);
    expect(failed).toMatchObject({ status: "failed", answer: "0 of 1 took it: 503" });
    expect(failed?.nextAttemptAt).toBe(ctx.now() + MINUTE_MS);
    expect(await deliver()).toEqual([]);
    ctx.clock.now += MINUTE_MS;
    const [pushed, ...others] = await deliver();
    expect([pushed?.message.tag, others]).toEqual([failed?.id, []]);
    expect(noticesTo(stage.operator)).toMatchObject([{ status: "delivered", attempts: 2 }]);
  });

  test("that fails leaves a notice delivered that another one took", async () => {
    await added(stage.operator);
    await added(stage.operator);
    service.answer(() => new Response(null, { status: 500 }));
    await escalated();
    expect(await tell()).toHaveLength(1);
    expect(noticesTo(stage.operator)).toMatchObject([
      { status: "delivered", answer: "1 of 2 took it: 500, 201", nextAttemptAt: null },
    ]);
    // Who was reached last comes first.
    ctx.clock.now += DAY_MS;
    service.answer(() => new Response(null, { status: 201 }));
    const [first] = await tell();
    const reached = ctx.reader.notices.pushSubscriptionsOf(stage.operator.userId);
    expect(first?.endpoint).toBe(reached[1]!.endpoint);
  });

  test("that redirects, hangs up, has another's certificate or a private address is not believed and not reached", async () => {
    await added(stage.operator);
    await added(stage.operator, newBrowser("https://10.0.0.1"));
    service.answer(() => new Response(null, { status: 307, headers: { Location: "https://example.com/" } }));
    await escalated();
    expect(await tell()).toEqual([]);
    expect(noticesTo(stage.operator)).toMatchObject([
      { status: "failed", answer: "0 of 2 took it: 307, source_blocked" },
    ]);
    const distrusting = {
      ...ctx,
      notices: tellingBy({ push: pushing(() => ctx, { certificateAuthorities: [] }) }),
    };
    ctx.clock.now += MINUTE_MS;
    await deliverNotices(distrusting, noFault);
    await attemptsOf(distrusting.notices);
    expect(noticesTo(stage.operator)).toMatchObject([
      { answer: "0 of 2 took it: source_unreachable, source_blocked" },
    ]);
    expect(service.received()).toEqual([]);
  });

  test("that hangs delays neither a mail nor a settlement", async () => {
    const hangs = Promise.withResolvers<Response>();
    const notices = tellingBy({ email: telling.email, push: pushing(() => ctx) });
    const both = { ...ctx, notices };
    await added(stage.operator);
    service.answer(() => hangs.promise);
    const id = await escalated();
    await noticePlanner(both, () => ctx.clock.now)(ctx.now());
    await deliverNotices(both, noFault);
    await Promise.all(notices.email.slots.underWay());
    expect(notices.push.slots.underWay()).toHaveLength(1);
    expect(telling.sent().length).toBeGreaterThan(0);
    expect(warrantIn(await settle(stage, stage.admin, id, "refund")).state).toBe("refunded");
    hangs.resolve(new Response(null, { status: 201 }));
    await attemptsOf(notices);
  });
});

describe("a device", () => {
  test("stays as it is where it is added again, and is one person's", async () => {
    const browser = service.subscribe();
    const { id } = await added(stage.operator, browser);
    expect((await added(stage.operator, browser, "Renamed")).id).toBe(id);
    expect(entries()).toHaveLength(1);
    const other = await createStage(ctx);
    for (const who of [stage.admin, other.operator])
      expect(await addDevice(ctx, who, { ...browser, name: "Mine" })).toMatchObject({
        refused: "already_exists",
      });
    expect([devicesOf(stage.admin), devicesOf(other.operator)]).toEqual([[], []]);
  });

  test("is one of ten, also where two are added at once", async () => {
    for (let count = 0; count < 9; count++) await added(stage.operator);
    const add = () => addDevice(ctx, stage.operator, { ...service.subscribe(), name: "One more" });
    const both = await Promise.all([add(), add()]);
    expect(both.filter(isRefusal)).toMatchObject([
      { refused: "validation_failed", message: expect.stringContaining("on 10 devices already; remove one") },
    ]);
    expect(devicesOf(stage.operator)).toHaveLength(10);
    const [first = ""] = devicesOf(stage.operator);
    must(await removeDevice(ctx, stage.operator, first));
    must(await add());
    must(await addDevice(ctx, stage.admin, { ...service.subscribe(), name: "Another's" }));
  });

  test("is removed by its person alone", async () => {
    const { id } = await added(stage.operator);
    const other = await createStage(ctx);
    for (const who of [stage.admin, stage.owner, other.operator])
      expect(await removeDevice(ctx, who, id)).toMatchObject({ refused: "validation_failed" });
    expect(devicesOf(stage.operator)).toEqual([id]);
    must(await removeDevice(ctx, stage.operator, id));
    expect(await removeDevice(ctx, stage.operator, id)).toMatchObject({
      message: "device: is not one of yours, or was removed already",
    });
  });

  test("of who was signed out meanwhile is neither added nor removed", async () => {
    const { id } = await added(stage.operator);
    const gone = { ...stage.operator, signInHash: "ended" };
    const refused = { refused: "not_authenticated" };
    expect(await addDevice(ctx, gone, { ...service.subscribe(), name: "Mine" })).toMatchObject(refused);
    expect(await removeDevice(ctx, gone, id)).toMatchObject(refused);
    expect(devicesOf(stage.operator)).toEqual([id]);
  });

  test("has its secret encrypted in the ledger, and neither that nor its address in the audit log", async () => {
    const { auth, endpoint, p256dh } = await added(stage.operator);
    const kept = ctx.ledger.bytes();
    expect([kept.includes(auth), kept.includes(p256dh)]).toEqual([false, true]);
    const [entry] = entries();
    expect(entry?.after).toEqual({
      devices: [
        {
          ...{ id: devicesOf(stage.operator)[0], name: "Laptop", push_service: new URL(endpoint).origin },
          created_at: new Date(ctx.now()).toISOString(),
        },
      ],
    });
  });

  const browser = newBrowser();
  test.each([
    ["endpoint", "", "http or https"],
    ["endpoint", "http://push.example.com/1", "must be an https URL"],
    ["endpoint", "http://127.0.0.1/1", "must be an https URL"],
    ["endpoint", "https://me:secret@push.example.com/1", "must not carry credentials"],
    ["endpoint", `https://push.example.com/${"x".repeat(2_048)}`, "at most 2048 characters"],
    ["p256dh", browser.p256dh.slice(1), "65 bytes in base64url"],
    ["p256dh", `${browser.p256dh}=`, "65 bytes in base64url"],
    // The right form, but not on the curve.
    ["p256dh", `B${"A".repeat(86)}`, "a point of its curve"],
    ["auth", browser.auth.slice(1), "16 bytes in base64url"],
    ["name", "", "1 to 200 characters"],
    ["name", "x".repeat(201), "1 to 200 characters"],
    ["name", "Ada\u202e", "one line"],
  ])("whose %s is %p is refused", async (field, value, why) => {
    const given = { ...browser, name: "Laptop", [field]: value };
    expect(await addDevice(ctx, stage.operator, given)).toMatchObject({
      refused: "validation_failed",
      message: expect.stringMatching(new RegExp(`^${field === "name" ? "device_name" : field}: .*${why}`)),
    });
    expect(devicesOf(stage.operator)).toEqual([]);
  });
});

describe("devices end", () => {
  let mine: Browser & { readonly id: string };
  beforeEach(async () => {
    mine = await added(stage.operator);
    await added(stage.admin);
  });
  const expectEnded = () => {
    expect(devicesOf(stage.operator)).toEqual([]);
    expect(devicesOf(stage.admin)).toHaveLength(1);
    expect(entries()[0]).toMatchObject({
      ...{ subject: stage.operator.userId, before: { devices: [{ id: mine.id }] }, after: { devices: [] } },
    });
  };

  test("with signing out everywhere", async () => {
    await signOutEverywhere(ctx, ctx.reader.users.get(stage.operator.userId)!, CLIENT);
    expectEnded();
  });

  test("with all sign-ins that an admin ends, but not with one", async () => {
    const { userId } = stage.operator;
    const [one] = ctx.reader.authSessions.of(userId, ctx.now(), 1);
    must(await endSignInsOf(ctx, MACHINE, { user_id: userId, sign_in_id: signInIdOf(one!) }, null));
    expect(devicesOf(stage.operator)).toEqual([mine.id]);
    // Also where they are signed in nowhere.
    must(await endSignInsOf(ctx, MACHINE, { user_id: userId }, null));
    expectEnded();
  });

  test("with the removal of their person", async () => {
    must(await removeUser(ctx, MACHINE, { user_id: stage.operator.userId }));
    expectEnded();
  });
});

describe("a test notice", () => {
  const ask = (who = stage.operator) => makeTestNotice(ctx, who);

  test("comes by each channel that is chosen and reaches its person, at any hour", async () => {
    const { endpoint } = await added(stage.operator);
    must(
      await chooseNotices(ctx, stage.operator, {
        channels: {},
        ...{ sandbox: false, from: "00:00", until: "00:01", timeZone: "UTC" },
      }),
    );
    expect(must(await ask())).toEqual(["push"]);
    const [pushed, ...others] = await deliver();
    expect([pushed?.endpoint, others]).toEqual([endpoint, []]);
    expect(pushed?.message).toMatchObject({
      title: "A test notice",
      link: "http://localhost:8080/console/settings/notices",
    });
    expect(pushed?.headers).toMatchObject({ urgency: "normal" });
  });

  test("is made once a minute for each person", async () => {
    await added(stage.operator);
    await added(stage.admin);
    must(await ask());
    expect(await ask()).toMatchObject({
      refused: "validation_failed",
      message: expect.stringContaining("less than a minute ago"),
    });
    must(await ask(stage.admin));
    ctx.clock.now += MINUTE_MS;
    must(await ask());
    expect(noticesTo(stage.operator)).toHaveLength(2);
  });

  test("is refused where no channel reaches its person, and to who was signed out", async () => {
    expect(await ask()).toMatchObject({
      refused: "validation_failed",
      message: expect.stringContaining("No channel that is chosen reaches you"),
    });
    await added(stage.operator);
    expect(await ask({ ...stage.operator, signInHash: "ended" })).toMatchObject({
      refused: "not_authenticated",
    });
    expect(noticesTo(stage.operator)).toEqual([]);
  });
});
