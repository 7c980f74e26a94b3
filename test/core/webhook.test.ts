import { describe, expect, test } from "bun:test";
import { createHmac } from "node:crypto";
import { compileSchema } from "../../src/core/clauses/schema.ts";
import { EVENT_TYPES } from "../../src/core/warrant.ts";
import {
  attemptHeaders,
  CUT_OFF,
  claimAttempt,
  deliveriesOf,
  endAttempt,
  giveUp,
  listensTo,
  newDelivery,
  newWebhookSecret,
  reschedule,
  type WebhookDelivery,
  type WebhookEndpoint,
} from "../../src/core/webhook.ts";
import { benchSchemas } from "../../src/resources/bench-schemas.ts";
import { eventBody, exampleBody } from "../../src/resources/event.ts";

const NOW = Date.UTC(2030, 0, 15, 12);
const ENDPOINT: WebhookEndpoint = {
  id: "whk_1",
  organisationId: "org_1",
  mode: "sandbox",
  url: "https://hook.example/",
  events: [],
  encryptedSecret: "",
  disabled: false,
  createdAt: NOW,
};
const EVENT_ID = "evt_01Q4JQ3TG0BSEMJ20DQGJRCGGM";
const FRESH = newDelivery(ENDPOINT, "whd_1", {
  event: "warrant.opened",
  eventId: EVENT_ID,
  warrantId: "wrt_1",
  sequence: 0,
  createdAt: NOW,
});
const answered = (code: number | null) => ({ code, responseStart: "x", durationMs: 5 });
const begin = (delivery: WebhookDelivery, now: number): WebhookDelivery => {
  const begun = claimAttempt(delivery, now);
  if (!begun) throw new Error("nothing is due");
  return begun;
};

describe("the endpoints that get an event", () => {
  const event = (type: (typeof EVENT_TYPES)[number]) =>
    ({ warrantId: "wrt_1", sequence: 2, recordedAt: NOW, event: { id: EVENT_ID, type } }) as const;

  test("get all five events where they name none, else the named ones; a disabled endpoint gets none", () => {
    const hears = (changed: Partial<WebhookEndpoint>) =>
      EVENT_TYPES.filter((type) => listensTo({ ...ENDPOINT, ...changed }, type));
    expect(hears({})).toEqual([...EVENT_TYPES]);
    expect(hears({ events: ["warrant.released"] })).toEqual(["warrant.released"]);
    expect(hears({ disabled: true })).toEqual([]);
  });

  test("get one delivery each, whose id is the same each time it is computed", () => {
    const endpoints = ["whk_1", "whk_2", "whk_3"].map((id) => ({
      ...ENDPOINT,
      id,
      disabled: id === "whk_3",
    }));
    const made = deliveriesOf(endpoints, event("warrant.released"), NOW);
    expect(made.map(({ webhookId }) => webhookId)).toEqual(["whk_1", "whk_2"]);
    expect(new Set(made.map(({ id }) => id)).size).toBe(2);
    expect(deliveriesOf(endpoints, event("warrant.released"), NOW)).toEqual(made);
    expect(made[0]).toMatchObject({ eventId: EVENT_ID, warrantId: "wrt_1", sequence: 2, status: "pending" });
    expect(deliveriesOf(endpoints, { ...event("warrant.released"), event: null }, NOW)).toEqual([]);
  });
});

describe("attempts", () => {
  test("wait 1, 5 and 25 s after a failure; the fourth exhausts", () => {
    let delivery = FRESH;
    let now = NOW;
    const waits: (number | null)[] = [];
    for (const attempt of [1, 2, 3, 4]) {
      delivery = endAttempt(begin(delivery, now), answered(500), now + 10);
      expect([delivery.attempts, delivery.responseCode]).toEqual([attempt, 500]);
      waits.push(delivery.nextAttemptAt && delivery.nextAttemptAt - (now + 10));
      now = delivery.nextAttemptAt ?? now;
    }
    expect(waits).toEqual([1_000, 5_000, 25_000, null]);
    expect(delivery.status).toBe("exhausted");
    expect(claimAttempt(delivery, now + 1e9)).toBeNull();
  });

  test.each([
    [199, "failed"],
    [200, "delivered"],
    [299, "delivered"],
    [300, "failed"],
    [null, "failed"],
  ] as const)("answered %p: %s", (code, status) => {
    expect(endAttempt(begin(FRESH, NOW), answered(code), NOW).status).toBe(status);
  });

  test("are claimed when they are due, once", () => {
    expect(claimAttempt(FRESH, NOW - 1)).toBeNull();
    const begun = begin(FRESH, NOW);
    expect(begun).toMatchObject({
      attempts: 1,
      nextAttemptAt: null,
      claimedUntil: NOW + 30_000,
      status: "pending",
    });
    expect(claimAttempt(begun, NOW + 1e9)).toBeNull();
  });

  test("end where the endpoint was disabled", () => {
    const over = giveUp(FRESH);
    expect([over.status, over.attempts, claimAttempt(over, NOW)]).toEqual(["exhausted", 0, null]);
  });
});

describe("a delivery that is off its schedule", () => {
  const begun = begin(FRESH, NOW);
  const failed = endAttempt(begun, answered(500), NOW);

  test("is rescheduled: an attempt that should have ended, and times from before the clock was set back", () => {
    expect(reschedule(begun, NOW + 30_000)).toEqual(endAttempt(begun, CUT_OFF, NOW + 30_000));
    expect(reschedule(begun, NOW - 1)).toEqual(endAttempt(begun, CUT_OFF, NOW - 1));
    expect(reschedule(failed, NOW - 86_400_000)).toEqual({ ...failed, nextAttemptAt: NOW - 86_400_000 });
  });

  test.each([
    ["under way", begun, NOW],
    ["almost over its time", begun, NOW + 29_999],
    ["waiting", failed, NOW],
    ["due", failed, NOW + 60_000],
    ["at the longest wait", failed, NOW - 24_000],
    ["delivered", endAttempt(begun, answered(200), NOW), NOW - 86_400_000],
  ])("is not what is %s", (_, delivery, now) => {
    expect(reschedule(delivery, now)).toBeNull();
  });
});

describe("signatures", () => {
  const secret = newWebhookSecret(() => 7);

  test("the secret is whsec_ and 32 random bytes in base64", () => {
    let next = 0;
    const made = newWebhookSecret(() => next++);
    expect(made).toStartWith("whsec_");
    expect([...Buffer.from(made.slice(6), "base64")]).toEqual(
      Array.from({ length: 32 }, (_, index) => index),
    );
  });

  test("are over the time and the raw body, in both forms", () => {
    const body = '{"payee":"Łódź"}';
    const delivery = begin(FRESH, NOW);
    const seconds = NOW / 1_000;
    const hmac = (key: string | Buffer, text: string) => createHmac("sha256", key).update(text);
    const raw = Buffer.from(secret.slice(6), "base64");
    expect(attemptHeaders(delivery, secret, body, NOW + 999)).toEqual({
      "Content-Type": "application/json",
      "Service-Signature": `t=${seconds},v1=${hmac(secret, `${seconds}.${body}`).digest("hex")}`,
      "Service-Event": "warrant.opened",
      "Service-Delivery": "whd_1",
      "Service-Attempt": "1",
      "webhook-id": EVENT_ID,
      "webhook-timestamp": String(seconds),
      "webhook-signature": `v1,${hmac(raw, `${EVENT_ID}.${seconds}.${body}`).digest("base64")}`,
    });
  });
});

describe("an example", () => {
  test.each([...EVENT_TYPES])(
    "of %s has the form of a real event, and says that it is an example",
    (event) => {
      const delivery: WebhookDelivery = { ...FRESH, event, warrantId: null, sequence: null };
      const text = exampleBody(delivery);
      const body = JSON.parse(text);
      const schema = benchSchemas["holdfast.event"];
      expect(schema && compileSchema(schema)(body)).toBe(true);
      expect(body).toMatchObject({ id: EVENT_ID, type: event, mode: "sandbox", example: true });
      expect(exampleBody({ ...delivery, id: "whd_2", attempts: 3, createdAt: NOW + 5 })).toBe(text);
    },
  );

  test("a real event does not say so", () => {
    const body = eventBody({ id: EVENT_ID, type: "warrant.opened" }, "live", NOW, '{"a":1}');
    expect(JSON.parse(body)).toEqual({
      id: EVENT_ID,
      object: "event",
      type: "warrant.opened",
      mode: "live",
      created_at: "2030-01-15T12:00:00.000Z",
      data: { a: 1 },
    });
  });
});
