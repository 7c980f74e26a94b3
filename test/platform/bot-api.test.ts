import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { type BotApi, type BotApiOptions, createBotApi } from "../../src/platform/bot-api.ts";
import { BOT_NAME, BOT_TOKEN, type BotApiServer, refusing, startBotApi } from "../support/bot-api.ts";

/** The client of the bot API, against one on this machine. */

let server: BotApiServer;
let now = 0;
let waits: number[] = [];
beforeEach(() => {
  server = startBotApi();
  now = 0;
  waits = [];
});
afterEach(() => server.stop());

const client = (changed: Partial<BotApiOptions> = {}): BotApi =>
  createBotApi({
    ...{ baseUrl: server.url, token: BOT_TOKEN, allowNetworks: ["127.0.0.0/8"], monotonicNow: () => now },
    async pause(ms) {
      waits.push(ms);
      now += ms;
    },
    ...changed,
  });
const HELLO = { text: "hello", buttons: [] };

test("a message is plain text, with its buttons in one row", async () => {
  const buttons = [
    { words: "Yes", data: "yes:1" },
    { words: "No", data: "no:1" },
  ];
  const bot = client();
  expect(await bot.send("42", { text: "*a* <b>b</b>", buttons })).toMatchObject({
    outcome: "delivered",
    answer: "200 ok",
  });
  await bot.edit("42", 7, { text: "c", buttons: [] });
  await bot.answerPress("press", null);
  await bot.answerPress("press", "Done");
  const keyboard = [
    [
      { text: "Yes", callback_data: "yes:1" },
      { text: "No", callback_data: "no:1" },
    ],
  ];
  const link_preview_options = { is_disabled: true };
  expect(server.asked()).toEqual([
    {
      method: "sendMessage",
      parameters: {
        chat_id: "42",
        text: "*a* <b>b</b>",
        link_preview_options,
        reply_markup: { inline_keyboard: keyboard },
      },
    },
    {
      method: "editMessageText",
      parameters: { chat_id: "42", message_id: 7, text: "c", link_preview_options },
    },
    { method: "answerCallbackQuery", parameters: { callback_query_id: "press" } },
    { method: "answerCallbackQuery", parameters: { callback_query_id: "press", text: "Done" } },
  ]);
});

describe("an answer", () => {
  const cases: readonly [status: number, description: string, outcome: string][] = [
    [400, "Bad Request: message is not modified: specified new message content", "delivered"],
    [400, "Bad Request: chat not found", "never"],
    [401, "Unauthorized", "failed"],
    [403, "Forbidden: bot was blocked by the user", "blocked"],
    [404, "Not Found", "failed"],
    [409, "Conflict", "never"],
    [413, "Request Entity Too Large", "never"],
    [500, "Internal Server Error", "failed"],
    [302, "Found", "failed"],
    [200, "not ok after all", "failed"],
  ];
  test.each(cases)("of %i %j is %s", async (status, description, outcome) => {
    server.answer("sendMessage", refusing(status, description));
    expect(await client().send("42", HELLO)).toMatchObject({ outcome, answer: `${status} ${description}` });
    expect(server.asked()).toHaveLength(1);
  });

  test("has no U+0000 as it is kept: PostgreSQL cannot keep one", async () => {
    server.answer("sendMessage", refusing(400, "Bad\0Request"));
    expect(await client().send("42", HELLO)).toMatchObject({ answer: "400 Bad\ufffdRequest" });
  });

  test("that is no JSON, or endless, is judged by its status", async () => {
    server.answer("sendMessage", () => new Response("<html>", { status: 502 }));
    expect(await client().send("42", HELLO)).toMatchObject({ outcome: "failed", answer: "502" });
    server.answer("sendMessage", () => new Response("x".repeat(1_000_000)));
    expect(await client().send("42", HELLO)).toMatchObject({ outcome: "failed", answer: "200" });
  });

  test("that does not come is a failure, in time", async () => {
    server.answer("sendMessage", () => new Promise(() => {}));
    expect(await client({ timeoutMs: 50 }).send("42", HELLO)).toMatchObject({
      outcome: "failed",
      answer: "source_timeout",
    });
  });

  test("that repeats the URL does not bring the token to where answers are kept", async () => {
    server.answer("sendMessage", refusing(404, `no /bot${BOT_TOKEN}/sendMessage here`));
    const { answer } = await client().send("42", HELLO);
    expect(answer).toBe("404 no /bot…/sendMessage here");
  });
});

describe("asked to wait", () => {
  const later = (seconds: unknown) =>
    refusing(429, "Too Many Requests: retry after", { retry_after: seconds });

  test("it waits so long, and asks once more", async () => {
    server.answer("sendMessage", later(7));
    const bot = client();
    expect(await bot.send("42", HELLO)).toMatchObject({ outcome: "delivered" });
    expect([waits, server.asked().length]).toEqual([[7_000], 2]);
  });

  test("so do other calls; longer than half a minute they fail without asking", async () => {
    server.answer("sendMessage", later(3_600));
    const bot = client();
    expect(await bot.send("42", HELLO)).toMatchObject({ outcome: "failed", answer: "429, later" });
    expect(await bot.edit("42", 1, HELLO)).toMatchObject({ outcome: "failed" });
    expect([waits, server.asked().length]).toEqual([[], 1]);
    now += 3_590_000;
    expect(await bot.edit("42", 1, HELLO)).toMatchObject({ outcome: "delivered" });
    expect(waits).toEqual([10_000]);
  });

  test("again and again, it fails", async () => {
    server.answer("sendMessage", later(1), later("soon"), later(1));
    expect(await client().send("42", HELLO)).toMatchObject({ outcome: "failed" });
    expect(server.asked()).toHaveLength(2);
  });
});

test("it goes to addresses that are allowed alone, and not to where a redirect leads", async () => {
  const bot = client({ allowNetworks: [] });
  expect(await bot.send("42", HELLO)).toMatchObject({ outcome: "failed", answer: "source_blocked" });
  const elsewhere = startBotApi();
  server.answer("sendMessage", () => Response.redirect(`${elsewhere.url}/bot${BOT_TOKEN}/sendMessage`, 307));
  expect(await client().send("42", HELLO)).toMatchObject({ outcome: "failed" });
  expect(elsewhere.asked()).toEqual([]);
  elsewhere.stop();
});

test("the bot's name is asked once, and after a failure not before a minute has passed", async () => {
  const bot = client();
  server.answer("getMe", refusing(500, "not now"));
  expect([await bot.username(), await bot.username()]).toEqual([null, null]);
  expect(server.asked()).toHaveLength(1);
  now += 60_000;
  expect([await bot.username(), await bot.username()]).toEqual([BOT_NAME, BOT_NAME]);
  expect(server.asked()).toHaveLength(1);
});

test("a name that is none is not shown", async () => {
  server.answer("getMe", () => Response.json({ ok: true, result: { username: "evil/../bot" } }));
  expect(await client().username()).toBeNull();
});
