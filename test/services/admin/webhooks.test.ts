import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { ErrorCode } from "../../../src/core/errors.ts";
import type { PersonCaller } from "../../../src/core/roles.ts";
import { EVENT_TYPES } from "../../../src/core/warrant.ts";
import type { WebhookRequest } from "../../../src/platform/webhook-sender.ts";
import { MACHINE } from "../../../src/services/admin/authority.ts";
import { recoverWebhook, redeliver, sendExample } from "../../../src/services/admin/deliveries.ts";
import {
  createWebhook,
  disableWebhook,
  listDeliveries,
  listWebhooks,
  type WebhookInput,
} from "../../../src/services/admin/webhooks.ts";
import { runDeliveries } from "../../../src/services/webhooks/deliver.ts";
import { createTestContext, type TestContext } from "../../support/context.ts";
import { type Expected, expectRefused } from "../../support/refused.ts";
import { createCaller, createStage, must, open, type Stage } from "../../support/stage.ts";

let ctx: TestContext;
let stage: Stage;
let code = 200;
const sent: WebhookRequest[] = [];
beforeAll(async () => {
  ctx = createTestContext({
    async sendWebhook(request) {
      sent.push(request);
      return { code, responseStart: "", durationMs: 3 };
    },
  });
  stage = await createStage(ctx);
});
afterAll(() => ctx.close());

const input = (overrides: Partial<WebhookInput> = {}): WebhookInput => ({
  organisation_id: stage.organisationId,
  mode: stage.mode,
  url: "https://hook.example/in",
  ...overrides,
});
const create = (overrides: Partial<WebhookInput> = {}) =>
  createWebhook(ctx, stage.admin, input(overrides)).then(must);
const auditEntries = () => ctx.reader.auditEntries.list(stage.organisationId, null, 100);
const noFault = (error: unknown): never => {
  throw error;
};
const run = () => runDeliveries(ctx, noFault);

describe("creating", () => {
  test("shows the secret once, and writes the audit entry without it", async () => {
    const { secret, ...webhook } = await create({
      events: ["warrant.refunded", "warrant.opened", "warrant.opened"],
    });
    expect(webhook).toEqual({
      id: expect.stringMatching(/^whk_[0-9A-HJKMNP-TV-Z]{26}$/),
      url: "https://hook.example/in",
      events: ["warrant.opened", "warrant.refunded"],
      disabled: false,
      created_at: new Date(ctx.clock.now).toISOString(),
    });
    expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
    expect(auditEntries()[0]).toMatchObject({
      action: "webhook.created",
      subject: webhook.id,
      actor: { kind: "user", id: stage.admin.userId },
      before: null,
      after: webhook,
    });
    const listed = must(await listWebhooks(ctx, stage.admin, input()));
    expect(listed.data).toContainEqual(webhook);
    expect(JSON.stringify([listed, auditEntries()])).not.toContain(secret);
  });

  test("no two secrets are the same, and none is in the ledger in clear text", async () => {
    const secrets = [(await create()).secret, (await create()).secret];
    expect(secrets[0]).not.toBe(secrets[1]);
    const bytes = ctx.ledger.bytes();
    expect(bytes.includes("https://hook.example/in")).toBe(true);
    for (const secret of secrets) {
      const decoded = Buffer.from(secret.slice(6), "base64");
      for (const form of [secret, secret.slice(6), decoded, decoded.toString("hex")])
        expect(bytes.includes(form)).toBe(false);
    }
  });

  const REFUSED: readonly (readonly [name: string, Partial<WebhookInput>, Expected])[] = [
    [
      "another scheme",
      { url: "ftp://hook.example/" },
      ["validation_failed", "url: must be an http or https URL"],
    ],
    [
      "credentials",
      { url: "https://a:b@hook.example/" },
      ["validation_failed", "url: must not carry credentials"],
    ],
    ["no URL", { url: "hook.example" }, ["validation_failed", "url: "]],
    [
      "length",
      { url: `https://hook.example/${"x".repeat(2_048)}` },
      ["validation_failed", "url: must be at most 2048"],
    ],
    [
      "unknown events, naming them",
      { events: ["warrant.escalated", "warrant.opened", "*"] },
      [
        "validation_failed",
        `events: must be among ${EVENT_TYPES.join(", ")}, and "warrant.escalated", "*" is not`,
      ],
    ],
    ["an unknown mode", { mode: "test" as "live" }, ["validation_failed", "mode: "]],
    ["another organisation", { organisation_id: "org_none" }, ["organisation_not_found", ""]],
  ];
  test.each(REFUSED)("is refused for %s, and nothing is written", (_, overrides, expected) =>
    expectRefused(ctx, () => createWebhook(ctx, MACHINE, input(overrides)), expected),
  );

  test("at most a hundred in use, of one mode", async () => {
    const own = await createStage(ctx);
    const more = (mode: "live" | "sandbox") =>
      createWebhook(ctx, MACHINE, {
        organisation_id: own.organisationId,
        mode,
        url: "https://hook.example/",
      });
    const made = await Promise.all(Array.from({ length: 100 }, () => more("live").then(must)));
    const expected: Expected = ["validation_failed", "organisation_id: has 100 endpoints"];
    await expectRefused(ctx, () => more("live"), expected);
    must(await more("sandbox"));
    must(await disableWebhook(ctx, MACHINE, { webhook_id: made[0]!.id }));
    must(await more("live"));
  });
});

test("every verb is for admins of the organisation, in the mode", async () => {
  const { id } = await create();
  must(await sendExample(ctx, MACHINE, { webhook_id: id }));
  await run();
  const delivery_id = ctx.reader.deliveries.list(stage, 1, id)[0]!.id;
  const verbs: readonly (readonly [verb: (by: PersonCaller) => Promise<unknown>, absent: ErrorCode])[] = [
    [(by) => disableWebhook(ctx, by, { webhook_id: id }), "webhook_not_found"],
    [(by) => listDeliveries(ctx, by, { webhook_id: id }), "webhook_not_found"],
    [(by) => recoverWebhook(ctx, by, { webhook_id: id, since: "2020-01-01T00:00:00Z" }), "webhook_not_found"],
    [(by) => sendExample(ctx, by, { webhook_id: id }), "webhook_not_found"],
    [(by) => redeliver(ctx, by, { delivery_id }), "delivery_not_found"],
    [(by) => createWebhook(ctx, by, input()), "organisation_not_found"],
    [(by) => listWebhooks(ctx, by, input()), "organisation_not_found"],
  ];
  const stranger = (await createStage(ctx)).owner;
  for (const [verb, absent] of verbs) {
    await expectRefused(ctx, () => verb(stage.operator), ["insufficient_role", ""]);
    await expectRefused(ctx, () => verb(stranger), [absent, ""]);
    if (absent !== "organisation_not_found")
      await expectRefused(ctx, () => verb({ ...stage.admin, mode: "sandbox" }), [absent, ""]);
  }
});

describe("disabling", () => {
  test("cannot be undone, is done once, and is in the audit log", async () => {
    const { secret: _, ...webhook } = await create();
    const after = { ...webhook, disabled: true };
    expect(must(await disableWebhook(ctx, stage.admin, { webhook_id: webhook.id }))).toEqual(after);
    const [entry, ...older] = auditEntries();
    expect(entry).toMatchObject({ action: "webhook.disabled", before: webhook, after });
    expect(must(await disableWebhook(ctx, stage.admin, { webhook_id: webhook.id }))).toEqual(after);
    expect(auditEntries()).toHaveLength(older.length + 1);
    const disabled: Expected = ["validation_failed", "webhook_id: is disabled"];
    await expectRefused(ctx, () => sendExample(ctx, MACHINE, { webhook_id: webhook.id }), disabled);
    const since = "2020-01-01T00:00:00Z";
    await expectRefused(ctx, () => recoverWebhook(ctx, MACHINE, { webhook_id: webhook.id, since }), disabled);
    expect(ctx.reader.deliveries.list(stage, 10, webhook.id)).toEqual([]);
    expect(auditEntries()).toHaveLength(older.length + 1);
  });
});

describe("sending again", () => {
  const open_ = async (count = 1): Promise<void> => {
    const key = await createCaller(stage);
    for (let one = 0; one < count; one++) must(await open(stage, key, { amount: "1" }));
  };
  const of = (id: string) => ctx.reader.deliveries.list(stage, 100, id);
  /** Runs all four attempts. */
  async function exhaust(): Promise<void> {
    code = 500;
    for (const wait of [0, 1_000, 5_000, 25_000]) {
      ctx.clock.now += wait;
      await run();
    }
    code = 200;
  }

  test("redeliver: a new delivery of the same event, even where the first one arrived", async () => {
    const { id } = await create();
    await open_();
    await run();
    const [first] = of(id);
    sent.length = 0;
    const again = must(await redeliver(ctx, stage.admin, { delivery_id: first!.id }));
    expect(again).toMatchObject({ webhook_id: id, event: "warrant.opened", status: "pending", attempts: 0 });
    expect(again.id).not.toBe(first!.id);
    expect(again.event_id).toBe(first!.eventId);
    expect(auditEntries()[0]).toMatchObject({
      action: "delivery.redelivered",
      subject: first!.id,
      after: again,
    });
    await run();
    expect(sent).toHaveLength(1);
    expect(sent[0]!.headers["Service-Delivery"]).toBe(again.id);
    expect(JSON.parse(sent[0]!.body).id).toBe(first!.eventId);
    expect(of(id).map(({ status, attempts }) => [status, attempts])).toEqual([
      ["delivered", 1],
      ["delivered", 1],
    ]);
  });

  test("recover: sends events once more that were exhausted since that time and never arrived", async () => {
    const { id } = await create();
    await open_();
    await exhaust();
    ctx.clock.now += 60_000;
    const since = new Date(ctx.clock.now).toISOString();
    await open_(2);
    await exhaust();
    expect(of(id).map(({ status }) => status)).toEqual(["exhausted", "exhausted", "exhausted"]);
    const recover = (from = since) =>
      recoverWebhook(ctx, stage.admin, { webhook_id: id, since: from }).then(must);
    expect(await recover()).toEqual({ object: "webhook_recovery", webhook_id: id, since, deliveries: 2 });
    expect(auditEntries()[0]).toMatchObject({
      action: "webhook.recovered",
      subject: id,
      after: { since, deliveries: 2 },
    });
    expect((await recover()).deliveries).toBe(0);
    await run();
    expect((await recover()).deliveries).toBe(0);
    expect((await recover("2020-01-01T00:00:00Z")).deliveries).toBe(1);
    await run();
    expect(
      of(id)
        .map(({ status }) => status)
        .toSorted(),
    ).toEqual([...Array(3).fill("delivered"), ...Array(3).fill("exhausted")]);
    const arrived = of(id).filter(({ status }) => status === "delivered");
    expect(new Set(arrived.map(({ eventId }) => eventId)).size).toBe(3);
    const yesterday = { webhook_id: id, since: "yesterday" };
    await expectRefused(ctx, () => recoverWebhook(ctx, MACHINE, yesterday), ["validation_failed", "since: "]);
  });

  test("recover makes all deliveries that are needed, some hundreds in each commit", async () => {
    const own = await createStage(ctx, { mode: "sandbox" });
    const webhook = must(
      await createWebhook(ctx, MACHINE, { ...input(), organisation_id: own.organisationId, mode: "sandbox" }),
    );
    const key = await createCaller(own);
    await Promise.all(Array.from({ length: 505 }, () => open(own, key, { amount: "1" }).then(must)));
    await exhaust();
    const found = must(
      await recoverWebhook(ctx, MACHINE, { webhook_id: webhook.id, since: "2020-01-01T00:00:00Z" }),
    );
    expect(found.deliveries).toBe(505);
    await run();
    const all = ctx.reader.deliveries.list(own, 10_000, webhook.id);
    expect(all.filter(({ status }) => status === "delivered")).toHaveLength(505);
  }, 30_000);

  test("an example has an event that the endpoint gets, says that it is an example, and can be sent again unchanged", async () => {
    const all = await create();
    const some = await create({ events: ["warrant.refunded"] });
    sent.length = 0;
    const example = must(await sendExample(ctx, stage.admin, { webhook_id: some.id }));
    expect(example).toMatchObject({ event: "warrant.refunded", warrant_id: null, status: "pending" });
    expect(auditEntries()[0]).toMatchObject({
      action: "webhook.example_sent",
      subject: some.id,
      after: example,
    });
    expect(must(await sendExample(ctx, stage.admin, { webhook_id: all.id })).event).toBe("warrant.released");
    await run();
    must(await redeliver(ctx, stage.admin, { delivery_id: example.id }));
    ctx.clock.now += 1_000;
    await run();
    expect(sent).toHaveLength(3);
    for (const { body } of sent) expect(JSON.parse(body)).toMatchObject({ example: true, mode: "live" });
    expect(sent[2]!.body).toBe(sent.slice(0, 2).find(({ body }) => body.includes("warrant.refunded"))!.body);
    expect(must(await listDeliveries(ctx, stage.admin, { webhook_id: some.id })).data).toMatchObject([
      { event_id: example.event_id, status: "delivered", response_code: 200, duration_ms: 3 },
      { event_id: example.event_id, status: "delivered", attempts: 1 },
    ]);
  });
});
