import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { BY_BOT, type Chats, SECRET, startChats, WEBHOOK } from "../support/chats.ts";
import type { TestOrganisation } from "../support/organisations.ts";

/** The webhook to which the bot API posts updates: who may call it, and what it ignores (docs/notices, "The messaging bot"). */

const WRITES = 5;

let chats: Chats;
let closed: Chats;
let home: TestOrganisation;
beforeAll(async () => {
  const rateLimits = { read: 100, write: WRITES, bench: 5 };
  chats = startChats({ rateLimits });
  closed = startChats({ secretHashes: { worker: null, messaging: null } });
  home = await closed.service.organisation();
});
beforeEach(() => {
  chats.service.clock.now += 60_000;
  chats.steady.now += 60_000;
  chats.ignored.splice(0);
});
afterAll(async () => {
  await chats.stop();
  await closed.stop();
});

describe("without the secret, or with another", () => {
  const wrong: readonly Record<string, string>[] = [
    {},
    { "X-Telegram-Bot-Api-Secret-Token": "" },
    { "X-Telegram-Bot-Api-Secret-Token": SECRET.slice(1) },
    { "X-Telegram-Bot-Api-Secret-Token": `${SECRET}x` },
    { "X-Telegram-Bot-Api-Secret-Token": SECRET.toUpperCase() },
    { "X-Service-Worker": SECRET },
    { Authorization: `Bearer ${SECRET}` },
  ];

  test.each(wrong)("%j is refused, before the body is looked at, and nothing is done", async (headers) => {
    for (const body of [chats.message(42, "/start"), "{"]) {
      const reply = await chats.post(body, headers);
      expect([reply.status, reply.code]).toEqual([401, "messaging_webhook_unauthenticated"]);
    }
    expect([await chats.idle(), chats.ignored]).toEqual([[], []]);
  });

  test("everybody is refused while no secret is configured", async () => {
    for (const headers of [{}, BY_BOT, { "X-Telegram-Bot-Api-Secret-Token": "null" }, home.people.owner.as])
      expect((await closed.post(closed.message(42, "hi"), headers)).code).toBe("messaging_webhook_unset");
    expect(await closed.idle()).toEqual([]);
  });

  test("strangers are counted by their address, and take nothing from the bot's", async () => {
    for (let count = 0; count < WRITES; count++) expect((await chats.post("{}", {})).status).toBe(401);
    expect((await chats.post("{}", {})).code).toBe("rate_limit_exceeded");
    for (let count = 0; count < 3 * WRITES; count++)
      expect((await chats.post(chats.message(1_000 + count, "hi"))).status).toBe(200);
    await chats.idle();
  });
});

test("an update is answered at once, though the bot API hangs, and the bot answers later", async () => {
  const hangs = Promise.withResolvers<void>();
  chats.server.answer("sendMessage", async () => {
    await hangs.promise;
    return Response.json({ ok: true, result: {} });
  });
  const reply = await chats.post(chats.message(42, "hello"));
  expect([reply.status, reply.text]).toEqual([200, "ok\n"]);
  expect(chats.messaging.intake.underWay()).toHaveLength(1);
  hangs.resolve();
  expect(await chats.idle()).toMatchObject([
    { method: "sendMessage", parameters: { chat_id: "42", text: expect.stringContaining("make a code") } },
  ]);
});

describe("is answered 200 and ignored, and nothing of it is in the log:", () => {
  const secret = "my private words";
  test.each<[string, unknown, string]>([
    ["what is no JSON", `{"${secret}`, "not an update"],
    ["another object", { secret }, "not an update"],
    ["an update of another kind", { update_id: 900_001, poll: { secret } }, "neither a message nor a button"],
    [
      "a message in a group",
      {
        update_id: 900_002,
        message: { from: { id: 42 }, chat: { id: -42, type: "group", title: secret }, text: secret },
      },
      "not a private chat with a person",
    ],
    [
      "a picture",
      {
        update_id: 900_003,
        message: { from: { id: 42 }, chat: { id: 42, type: "private" }, caption: secret },
      },
      "not a text",
    ],
    [
      "a press without its message",
      { update_id: 900_004, callback_query: { id: "1", from: { id: 42 }, data: secret } },
      "not a private chat with a person",
    ],
  ])("%s", async (_, update, why) => {
    expect((await chats.post(update)).status).toBe(200);
    expect(await chats.idle()).toEqual([]);
    expect(chats.ignored).toEqual([why]);
  });
});

test("an update that comes again is worked on once", async () => {
  const update = chats.message(42, "hello");
  expect(await chats.taken(update)).toHaveLength(1);
  expect(await chats.taken(update)).toEqual([]);
  expect(chats.ignored).toEqual(["known already"]);
  const [one, other] = await Promise.all([chats.post(chats.message(42, "a")), chats.post(update)]);
  expect([one.status, other.status]).toEqual([200, 200]);
  expect(await chats.idle()).toHaveLength(1);
});

test("a body over 256 kB is refused", async () => {
  expect((await chats.post(`"${"x".repeat(256 * 1_024)}"`)).code).toBe("validation_failed");
});

test("another method is 404", async () => {
  for (const method of ["GET", "PUT", "DELETE"])
    expect((await chats.service.send(method, WEBHOOK, undefined, { headers: BY_BOT })).code).toBe(
      "route_not_found",
    );
});

describe("what strangers write is bounded", () => {
  test("a chat is answered five times a minute", async () => {
    for (let count = 0; count < 5; count++) expect(await chats.writes(7, "who are you")).toBeDefined();
    expect(await chats.writes(7, "who are you")).toBeUndefined();
    expect(chats.ignored).toEqual(["too many in a minute"]);
    expect(await chats.writes(8, "who are you")).toBeDefined();
    chats.steady.now += 60_000;
    expect(await chats.writes(7, "who are you")).toBeDefined();
  });

  test("all of them together sixty times", async () => {
    for (let count = 0; count < 60; count++) await chats.taken(chats.message(20_000 + count, "hi"));
    expect(chats.ignored).toEqual([]);
    expect(await chats.writes(30_000, "hi")).toBeUndefined();
  });

  test("while 64 are worked on, more are to be sent again, and are not forgotten", async () => {
    const hangs = Promise.withResolvers<void>();
    const hang = async () => {
      await hangs.promise;
      return Response.json({ ok: true, result: {} });
    };
    chats.server.answer("sendMessage", ...Array.from({ length: 64 }, () => hang));
    for (let count = 0; count < 64; count++) {
      if (count === 32) chats.steady.now += 60_000;
      expect((await chats.post(chats.message(40_000 + count, "hi"))).status).toBe(200);
    }
    const late = chats.message(50_000, "hi");
    const refused = await chats.post(late);
    expect([refused.status, refused.code, refused.headers.get("retry-after")]).toEqual([
      429,
      "rate_limit_exceeded",
      "1",
    ]);
    hangs.resolve();
    await chats.idle();
    expect(await chats.taken(late)).toHaveLength(1);
  });
});
