import { afterEach, beforeEach, expect, type Mock, spyOn, test } from "bun:test";
import { readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { type RunningServer, startServer } from "../../src/app.ts";
import { NO_SECRETS, readConfig } from "../../src/config.ts";
import { isRefusal } from "../../src/core/errors.ts";
import { BOT_TOKEN, type BotApiServer, refusing, startBotApi } from "../support/bot-api.ts";
import { newLedgerFolder } from "../support/new-ledger.ts";
import { testSettings } from "../support/server.ts";
import { until } from "../support/until.ts";

/** The running server with its bot, whatever the bot API does: the token and what people write are in no log and in no file. */

const SECRET = "the-webhooks_secret";
const WORDS = "my private words";

let folder: string;
let api: BotApiServer;
let server: RunningServer;
let printed: Mock<typeof process.stderr.write>;
const lines: string[] = [];
beforeEach(async () => {
  folder = newLedgerFolder();
  api = startBotApi();
  lines.splice(0);
  printed = spyOn(process.stderr, "write").mockImplementation((line) => lines.push(String(line)) > 0);
  const config = readConfig({ ...testSettings(folder), MESSAGING_URL: api.url, LOG: "requests" }, {});
  if (isRefusal(config)) throw new Error(config.message);
  const secrets = { ...NO_SECRETS, messagingToken: BOT_TOKEN, messagingSecret: SECRET };
  const started = await startServer(config, secrets);
  if (isRefusal(started)) throw new Error(started.message);
  server = started;
});
afterEach(async () => {
  await server?.stop();
  printed.mockRestore();
  api.stop();
  rmSync(folder, { recursive: true, force: true });
});

const post = (body: string, secret = SECRET) =>
  fetch(`${server.url}/messaging/webhook`, {
    method: "POST",
    headers: { "X-Telegram-Bot-Api-Secret-Token": secret, "Content-Type": "application/json" },
    body,
  });
const update = (id: number) =>
  JSON.stringify({
    update_id: id,
    message: { message_id: 1, from: { id: 42 }, chat: { id: 42, type: "private" }, text: WORDS },
  });

test("the token and what people write are in no log, in no answer and in no file", async () => {
  const echo = `/bot${BOT_TOKEN}/sendMessage: ${WORDS}`;
  api.answer(
    "sendMessage",
    refusing(401, echo),
    () => new Response(echo, { status: 502 }),
    () => Response.redirect(`http://127.0.0.1:1/bot${BOT_TOKEN}/x`, 302),
  );
  let asked = 0;
  for (let id = 1; id <= 4; id++) {
    const reply = await post(update(id));
    expect([reply.status, await reply.text()]).toEqual([200, "ok\n"]);
    await until("the bot answers", () => {
      asked += api.asked().length;
      return asked >= id;
    });
  }
  expect((await post(update(1))).status).toBe(200);
  expect((await post(`{"${WORDS}`)).status).toBe(200);
  expect((await post(update(9), "another_secret-xx")).status).toBe(401);
  expect(api.paths.every((path) => path.startsWith(`/bot${BOT_TOKEN}/`))).toBe(true);
  await server.stop();
  const log = lines.join("");
  expect(log).toContain('"why":"not an update"');
  expect(log).toContain("messaging_webhook_unauthenticated");
  expect(log).toContain('"route":"/messaging/webhook"');
  const files = readdirSync(folder).map((file) => readFileSync(join(folder, file)).toString("latin1"));
  for (const text of [log, ...files])
    for (const secret of [BOT_TOKEN, SECRET, WORDS]) expect(text.includes(secret)).toBe(false);
});

test("a stop waits for what the bot is about to say", async () => {
  const hangs = Promise.withResolvers<void>();
  const arrived = Promise.withResolvers<void>();
  let said = false;
  api.answer("sendMessage", async () => {
    arrived.resolve();
    await hangs.promise;
    said = true;
    return Response.json({ ok: true, result: {} });
  });
  await post(update(1));
  await arrived.promise;
  const stopped = server.stop();
  // Nothing says that a stop waits: within this time one that does not would be over.
  expect(await Promise.race([stopped.then(() => "stopped"), Bun.sleep(500).then(() => "waits")])).toBe(
    "waits",
  );
  hangs.resolve();
  await stopped;
  expect(said).toBe(true);
});
