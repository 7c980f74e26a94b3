import { expect } from "bun:test";
import { sha256 } from "../../src/core/canonical.ts";
import { createBotApi } from "../../src/platform/bot-api.ts";
import type { Messaging } from "../../src/services/context.ts";
import { createIntake } from "../../src/services/messaging/intake.ts";
import { chatSender } from "../../src/services/messaging/send.ts";
import { deliverNotices } from "../../src/services/notices/deliver.ts";
import { noticePlanner } from "../../src/services/notices/plan.ts";
import { BOT_TOKEN, type BotCall, startBotApi } from "./bot-api.ts";
import { tellingBy } from "./channels.ts";
import type { Json } from "./client.ts";
import { consoleOfShell, quietSite } from "./console.ts";
import { noFault } from "./no-fault.ts";
import { PASSWORD, type Person, type TestOrganisation } from "./organisations.ts";
import { type ShellService, startTestShell } from "./server.ts";
import { attemptsOf } from "./telling.ts";

export const WEBHOOK = "/messaging/webhook";
export const SECRET = "the-webhooks_secret";
export const BY_BOT = { "X-Telegram-Bot-Api-Secret-Token": SECRET };
export const NOTICES = "/console/settings/notices";
export const CHAT = `${NOTICES}/chat`;

const DAY_MS = 24 * 3_600_000;
/** What is raised within so long after a notice comes together with it. */
const GATHERED_MS = 5 * 60_000;

/** The updates that a bot API posts, each with the next id. */
export function createUpdates() {
  let updateId = 0;
  const from = (chatId: number, more: object = {}) => ({ id: chatId, is_bot: false, ...more });
  return {
    message: (chatId: number, text: string, more: object = {}) => ({
      update_id: ++updateId,
      message: { message_id: 1, from: from(chatId, more), chat: { id: chatId, type: "private" }, text },
    }),
    press: (chatId: number, data: string, messageId = 7) => ({
      update_id: ++updateId,
      callback_query: {
        id: `press-${updateId}`,
        from: from(chatId),
        message: { message_id: messageId, chat: { id: chatId, type: "private" } },
        data,
      },
    }),
  };
}

/** A bot whose API is on this machine, and what it ignores and fails at. */
function createBot() {
  const server = startBotApi();
  const steady = { now: 0 };
  const ignored: string[] = [];
  const faults: unknown[] = [];
  const monotonicNow = () => steady.now;
  const messaging: Messaging = {
    bot: createBotApi({
      ...{ baseUrl: server.url, token: BOT_TOKEN, allowNetworks: ["127.0.0.0/8"] },
      ...{ monotonicNow, pause: async () => {} },
    }),
    hears: true,
    intake: createIntake(monotonicNow, (error) => faults.push(error)),
    onIgnored: (why) => ignored.push(why),
  };
  return { server, steady, ignored, faults, messaging };
}

type Overrides = Parameters<typeof startTestShell>[0];

/** The service without a socket, with a bot, and people who chat with it. */
export function startChats(overrides: Overrides = {}) {
  const { server, messaging, faults, ...bot } = createBot();
  const { message, press } = createUpdates();
  const service: ShellService = startTestShell({
    messaging,
    notices: tellingBy({ messaging: (...sent) => chatSender(service.ctx, messaging.bot)(...sent) }),
    site: quietSite(),
    secretHashes: { worker: null, messaging: sha256(SECRET) },
    ...overrides,
  });
  const plan = noticePlanner(service.ctx, () => service.clock.now);
  const openConsole = consoleOfShell(service);

  const idle = async (): Promise<readonly BotCall[]> => {
    await Promise.all(messaging.intake.underWay());
    return server.asked();
  };
  const post = (update: unknown, headers: Readonly<Record<string, string>> = BY_BOT) =>
    service.post(WEBHOOK, update, { headers, key: null });
  const taken = async (update: unknown) => {
    expect((await post(update)).status).toBe(200);
    return idle();
  };
  /** Makes a code at the console. */
  const code = async ({ as }: Person): Promise<string> => {
    const browser = openConsole(as);
    const form = await browser.formOn(CHAT, CHAT);
    const shown = await browser.post(CHAT, { ...form, password: PASSWORD });
    return /value="((?:[0-9A-Z]{4}-){2}[0-9A-Z]{4})"/.exec(shown.html)?.[1] ?? `no code: ${shown.text}`;
  };
  /** What the bot says to a text. */
  const writes = async (chatId: number, text: string, more: object = {}): Promise<string | undefined> =>
    (await taken(message(chatId, text, more))).find(({ method }) => method === "sendMessage")?.parameters
      .text;

  return {
    ...{ ...bot, server, messaging, faults, service, openConsole },
    ...{ idle, post, message, press, taken, code, writes },
    async link(person: Person, chatId: number): Promise<void> {
      expect(await writes(chatId, `/start ${await code(person)}`)).toContain("This chat is linked to");
    },
    /** Makes the notices of what waits, and sends them: what the chats were sent, by chat. */
    async tell(): Promise<ReadonlyMap<string, Json>> {
      await plan(service.ctx.now());
      for (let round = 0; round < 3; round++) {
        await deliverNotices(service.ctx, noFault);
        await attemptsOf(service.ctx.notices);
      }
      const sent = (await idle()).filter(({ method }) => method === "sendMessage");
      return new Map(sent.map(({ parameters }) => [parameters.chat_id, parameters]));
    },
    /** What became of a press: the message as it is now, and what was said to the press. */
    async presses(chatId: number, data: string) {
      const update = press(chatId, data);
      const calls = await taken(update);
      const of = (name: string) => calls.filter(({ method }) => method === name);
      const answered = of("answerCallbackQuery").map(({ parameters }) => parameters);
      expect(answered.map(({ callback_query_id: id }) => id)).toEqual([update.callback_query.id]);
      const [edited] = of("editMessageText");
      return {
        text: (edited?.parameters.text ?? null) as string | null,
        buttons: buttonsIn(edited?.parameters),
        said: (answered[0]?.text ?? null) as string | null,
      };
    },
    /** A warrant that waits for a person's decision, and its escalation. */
    async escalated(home: TestOrganisation, overrides: object = {}) {
      const spec = { clauses: [{ kind: "http.status", equals: 500 }] };
      const { as, ...body } = {
        as: home.live.as,
        deadline: service.timeIn(30 * DAY_MS),
        ...overrides,
      } as Json;
      const { id } = await service.opened(home, { spec, ...body }, { as });
      await service.post(`/v1/warrants/${id}/verify`, { source_url: "http://source.example/" }, { as });
      const escalation = await service.ctx.store.read(({ escalations }) => escalations.waitingOf(id));
      if (!escalation) throw new Error("nothing waits");
      // What comes next is no part of this notice.
      service.clock.now += GATHERED_MS;
      return { id, escalation: escalation.id };
    },
    stop: async () => {
      await messaging.intake.close();
      server.stop();
      await service.close();
      expect(faults).toEqual([]);
    },
  };
}

export type Chats = ReturnType<typeof startChats>;
/** The buttons below a message, by their words. */
export const buttonsIn = (parameters: Json): Readonly<Record<string, string>> =>
  Object.fromEntries(
    (parameters?.reply_markup?.inline_keyboard ?? [])
      .flat()
      .map(({ text, callback_data }: Json) => [text, callback_data]),
  );
