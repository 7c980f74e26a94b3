import { type Fields, fieldsOf } from "../core/messaging.ts";
import { storableText } from "../core/storable-text.ts";
import { SECOND_MS } from "../core/time.ts";
import { createAddressRules, type OwnListeners } from "./addresses.ts";
import { failureCode, readStart, requestSafely, type SafeRequestOptions } from "./safe-request.ts";

export type BotApiOptions = {
  /** Such as `https://api.telegram.org`, without a slash at its end. */
  readonly baseUrl: string;
  readonly token: string;
  /** CIDRs that the operator allows besides the public addresses. */
  readonly allowNetworks: readonly string[];
  readonly ownListeners?: OwnListeners;
  /** The time limit of one request and its answer together. */
  readonly timeoutMs?: number;
  /** A clock that never jumps, in milliseconds, and how to wait by it. */
  readonly monotonicNow: () => number;
  readonly pause: (ms: number) => Promise<void>;
} & Omit<SafeRequestOptions, "rules">;

/** A button below a message. Its data, at most 64 bytes, comes back when it is pressed. */
export type BotButton = { readonly words: string; readonly data: string };

/** A message of plain text, at most 4,096 characters. */
export type BotMessage = { readonly text: string; readonly buttons: readonly BotButton[] };

/** `blocked`: the person wants no messages of this bot. `never`: the same message will not be taken later either. */
export type BotResult = {
  readonly outcome: "delivered" | "failed" | "never" | "blocked";
  readonly answer: string;
  readonly durationMs: number;
};

/** Speaks as the bot, in the form of Telegram's Bot API. It never throws, and shows the token to nobody but the bot API. */
export type BotApi = {
  send(chatId: string, message: BotMessage): Promise<BotResult>;
  /** Writes a message anew. Without buttons it loses those that it had. */
  edit(chatId: string, messageId: number, message: BotMessage): Promise<BotResult>;
  /** Ends the wait that a pressed button shows, with a short text where there is one. */
  answerPress(pressId: string, text: string | null): Promise<BotResult>;
  /** The bot's name, by which people find it; null while it is not known. */
  username(): Promise<string | null>;
};

const ANSWER_BYTES_MAX = 64 * 1024;
/** What is kept of what the bot API said. */
const SAID_LENGTH_MAX = 200;
/** How long a call waits where the bot API asked to send later. Where that is not enough, the call fails. */
const WAIT_MS_MAX = 30 * SECOND_MS;
/** How long the page that shows the bot's name waits for it, and for how long it is not asked again after a failure. */
const NAME_TIMEOUT_MS = 3 * SECOND_MS;
const NAME_AGAIN_MS = 60 * SECOND_MS;

type Answered = {
  readonly status: number | null;
  readonly said: string;
  readonly result: unknown;
  readonly retryAfterMs: number | null;
};

/** The client of a bot API. Throws on a malformed CIDR. */
export function createBotApi(options: BotApiOptions): BotApi {
  const { baseUrl, token, timeoutMs = 10 * SECOND_MS, monotonicNow, pause } = options;
  const safe = { ...options, rules: createAddressRules(options.allowNetworks, options.ownListeners) };
  let pausedUntil = Number.NEGATIVE_INFINITY;
  let name: string | null = null;
  let nameAskedAt = Number.NEGATIVE_INFINITY;

  async function ask(method: string, parameters: object, withinMs: number): Promise<Answered> {
    const controller = new AbortController();
    const { signal } = controller;
    const timer = setTimeout(() => controller.abort(), withinMs);
    try {
      const response = await requestSafely(safe, {
        url: new URL(`${baseUrl}/bot${token}/${method}`),
        method: "POST",
        headers: {
          "content-type": "application/json",
          "user-agent": "Holdfast/0.1",
          "accept-encoding": "identity",
        },
        body: JSON.stringify(parameters),
        signal,
      });
      const bytes = await readStart(response, signal, ANSWER_BYTES_MAX);
      return answerOf(response.status, new TextDecoder().decode(bytes, { stream: true }), token);
    } catch (error) {
      return { status: null, said: failureCode(error, signal), result: null, retryAfterMs: null };
    } finally {
      clearTimeout(timer);
      controller.abort();
    }
  }

  /** Asked to wait, it waits and asks once more; and so do all calls that come meanwhile. */
  async function call(method: string, parameters: object): Promise<BotResult> {
    const startedAt = performance.now();
    const took = () => Math.round(performance.now() - startedAt);
    for (let attempt = 1; ; attempt++) {
      const waitMs = pausedUntil - monotonicNow();
      if (waitMs > WAIT_MS_MAX) return { outcome: "failed", answer: "429, later", durationMs: took() };
      if (waitMs > 0) await pause(waitMs);
      const answered = await ask(method, parameters, timeoutMs);
      const { status, said, retryAfterMs } = answered;
      if (retryAfterMs !== null) {
        pausedUntil = Math.max(pausedUntil, monotonicNow() + retryAfterMs);
        if (attempt === 1) continue;
      }
      const answer = status === null || said.startsWith(String(status)) ? said : `${status} ${said}`.trim();
      return { outcome: outcomeOf(answered), answer, durationMs: took() };
    }
  }

  return {
    send: (chatId, message) => call("sendMessage", { chat_id: chatId, ...messageOf(message) }),
    edit: (chatId, messageId, message) =>
      call("editMessageText", { chat_id: chatId, message_id: messageId, ...messageOf(message) }),
    answerPress: (pressId, text) =>
      call("answerCallbackQuery", { callback_query_id: pressId, ...(text !== null && { text }) }),
    async username() {
      if (name !== null || monotonicNow() - nameAskedAt < NAME_AGAIN_MS) return name;
      nameAskedAt = monotonicNow();
      const { result } = await ask("getMe", {}, NAME_TIMEOUT_MS);
      const { username } = fieldsOf(result);
      if (typeof username === "string" && /^[A-Za-z0-9_]{1,64}$/.test(username)) name = username;
      return name;
    },
  };
}

/** Without `parse_mode`, so that nothing in a text is markup. */
const messageOf = ({ text, buttons }: BotMessage): object => ({
  text,
  link_preview_options: { is_disabled: true },
  ...(buttons.length > 0 && {
    reply_markup: {
      inline_keyboard: [buttons.map(({ words, data }) => ({ text: words, callback_data: data }))],
    },
  }),
});

function answerOf(status: number, text: string, token: string): Answered {
  let body: Fields = {};
  try {
    body = fieldsOf(JSON.parse(text));
  } catch {
    // An error of a proxy in between, or an answer that was cut off: the status alone decides.
  }
  const { ok, description, result, parameters } = body;
  const { retry_after: seconds } = fieldsOf(parameters);
  const said = typeof description === "string" ? description : ok === true ? "ok" : "";
  const isWait = status === 429;
  return {
    status,
    // A server that is not the bot API may repeat the URL, and the token is a part of it.
    said: storableText(said.replaceAll(token, "…").slice(0, SAID_LENGTH_MAX)),
    result: ok === true ? result : null,
    retryAfterMs: isWait ? (typeof seconds === "number" && seconds > 0 ? seconds : 1) * SECOND_MS : null,
  };
}

function outcomeOf({ status, said, result }: Answered): BotResult["outcome"] {
  if (status === 200 && result !== null) return "delivered";
  // It says already what it should say.
  if (status === 400 && said.includes("message is not modified")) return "delivered";
  if (status === 403) return "blocked";
  // What is about the token may be corrected, and 429 passes.
  const isForGood = status !== null && status >= 400 && status < 500 && ![401, 404, 429].includes(status);
  return isForGood ? "never" : "failed";
}
