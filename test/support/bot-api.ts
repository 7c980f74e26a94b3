import type { Json } from "./client.ts";

/** A request as the bot API received it. */
export type BotCall = { readonly method: string; readonly parameters: Json };

/** An answer that the bot API gives in place of its usual one. */
export type BotAnswer = (parameters: Json) => Response | Promise<Response>;

export const BOT_TOKEN = "123456:AAtest-token_of-a-bot";
export const BOT_NAME = "holdfast_test_bot";

/** What a bot API says where it takes nothing. */
export const refusing = (status: number, description: string, parameters: object = {}): BotAnswer => {
  const body = { ok: false, error_code: status, description, parameters };
  return () => Response.json(body, { status });
};

/** A bot API on this machine, in the form of Telegram's. It records what it is asked, and fails as a test says. */
export function startBotApi() {
  const calls: BotCall[] = [];
  const paths: string[] = [];
  const answers = new Map<string, BotAnswer[]>();
  let messageId = 1_000;
  const results: Readonly<Record<string, (parameters: Json) => unknown>> = {
    getMe: () => ({ id: 1, is_bot: true, username: BOT_NAME }),
    sendMessage: ({ chat_id, text }) => ({ message_id: ++messageId, chat: { id: chat_id }, text }),
    editMessageText: ({ message_id, text }) => ({ message_id, text }),
    answerCallbackQuery: () => true,
  };
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    idleTimeout: 0,
    async fetch(request) {
      const { pathname } = new URL(request.url);
      paths.push(pathname);
      const method = pathname.slice(pathname.lastIndexOf("/") + 1);
      const parameters = await request.json();
      calls.push({ method, parameters });
      const planned = answers.get(method)?.shift();
      if (planned) return planned(parameters);
      if (pathname !== `/bot${BOT_TOKEN}/${method}`) return refusing(401, "Unauthorized")(parameters);
      const result = results[method]?.(parameters);
      return result === undefined
        ? refusing(404, "Not Found")(parameters)
        : Response.json({ ok: true, result });
    },
  });
  return {
    url: `http://127.0.0.1:${server.port}`,
    paths,
    /** What it was asked since the last call of this. */
    asked: (): readonly BotCall[] => calls.splice(0),
    /** Plans the next answers to a method. */
    answer: (method: string, ...next: readonly BotAnswer[]): void =>
      void answers.set(method, [...(answers.get(method) ?? []), ...next]),
    stop: () => void server.stop(true),
  };
}

export type BotApiServer = ReturnType<typeof startBotApi>;
