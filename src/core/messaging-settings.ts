import { isLoopback, type Parse, url } from "./setting-values.ts";

/** The bot that people chat with, in the form of Telegram's Bot API (docs/configuration, "Messaging"). */

/** The bot's token is a part of every URL, so it goes through TLS, or stays on this machine. */
export const parseBotApi: Parse<string> = (text) => {
  const base = url(text);
  if (typeof base !== "string") return base;
  const { protocol, hostname } = new URL(base);
  return protocol === "https:" || isLoopback(hostname)
    ? base
    : { problem: "must begin with https://, unless the bot API is on this machine" };
};

export const parseBotToken: Parse<string> = (text) =>
  /^[A-Za-z0-9:_-]{16,256}$/.test(text)
    ? text
    : { problem: "must be the bot's token, such as 123456:ABC-DEF1234ghIkl-zyx57W2v1u123ew11" };

/** What Telegram takes as `secret_token` of `setWebhook`, and long enough that nobody guesses it. */
export const parseWebhookSecret: Parse<string> = (text) =>
  /^[A-Za-z0-9_-]{16,256}$/.test(text)
    ? text
    : { problem: "must be 16 to 256 characters of A-Z, a-z, 0-9, _ and -" };
