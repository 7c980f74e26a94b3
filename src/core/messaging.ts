import { type Refusal, refuse } from "./errors.ts";
import { isId } from "./ids.ts";
import type { Organisation } from "./organisation.ts";
import { reachesThreshold } from "./passkey.ts";
import { MINUTE_MS } from "./time.ts";
import type { Warrant } from "./warrant.ts";

/** Chats of people with the bot of this instance, in the form of Telegram's Bot API (docs/notices, "The messaging bot"). */

/** A private chat that a person has linked. A person has one at most, and a chat belongs to one person. */
export type MessagingAccount = {
  readonly userId: string;
  readonly organisationId: string;
  /** In digits. */
  readonly chatId: string;
  /** What the person is called there, without the @; null where they have no such name. */
  readonly username: string | null;
  readonly linkedAt: number;
};

/** A one-time code that links the chat it is sent from. A person has one at most. Only its hash is kept. */
export type MessagingCode = {
  readonly userId: string;
  readonly organisationId: string;
  readonly codeHash: string;
  readonly expiresAt: number;
};

export const CODE_MS = 10 * MINUTE_MS;

/** 60 random bits. The letters I, L, O and U are not among them, since people type codes. */
const CODE_LENGTH = 12;
const ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const CODE = new RegExp(`^[${ALPHABET}]{${CODE_LENGTH}}$`);

/** @param randomByte a cryptographic source of uniform bytes */
export const newCode = (randomByte: () => number): string =>
  Array.from({ length: CODE_LENGTH }, () => ALPHABET.charAt(randomByte() & 31)).join("");

/** As people read it: `ABCD-EFGH-JKMN`. */
export const displayCode = (code: string): string => code.match(/.{1,4}/g)?.join("-") ?? code;

/** The code in what somebody typed; null for any other text. */
export function readCode(text: string): string | null {
  const code = text.toUpperCase().replaceAll(/[\s-]/g, "").replaceAll("O", "0").replaceAll(/[IL]/g, "1");
  return CODE.test(code) ? code : null;
}

/** What a person wrote to the bot in a private chat. */
export type ChatText = {
  readonly chatId: string;
  readonly username: string | null;
  readonly text: string;
};

/** A press of a button below one of the bot's messages in a private chat. */
export type ChatPress = {
  readonly chatId: string;
  readonly messageId: number;
  /** By which the press is answered. */
  readonly pressId: string;
  readonly data: string;
};

/** An update as the bot API posts it. `ignored` says why nobody needs it. */
export type Update = { readonly id: number } & (
  | ({ readonly kind: "text" } & ChatText)
  | ({ readonly kind: "press" } & ChatPress)
  | { readonly kind: "ignored"; readonly why: string }
);

export type Fields = Readonly<Record<string, unknown>>;
/** The fields of a JSON object that others wrote. Any other value has no fields. */
export const fieldsOf = (value: unknown): Fields =>
  typeof value === "object" && value !== null ? (value as Fields) : {};

const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && Number(value) >= 0;

/** The update in the text of a request; null where the text holds none. Fields that are not needed may be anything. */
export function parseUpdate(text: string): Update | null {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    return null;
  }
  const { update_id: id, message, callback_query: query } = fieldsOf(parsed);
  if (!isCount(id)) return null;
  if (message !== undefined) return { id, ...readText(fieldsOf(message)) };
  if (query !== undefined) return { id, ...readPress(fieldsOf(query)) };
  return { id, kind: "ignored", why: "neither a message nor a button" };
}

type Read = Update extends infer One ? (One extends Update ? Omit<One, "id"> : never) : never;

const ignored = (why: string) => ({ kind: "ignored", why }) as const;

function readText({ chat, from, text }: Fields): Read {
  const chatId = privateChatOf(chat, from);
  if (chatId === null) return ignored("not a private chat with a person");
  if (typeof text !== "string") return ignored("not a text");
  const { username } = fieldsOf(from);
  const isName = typeof username === "string" && /^[A-Za-z0-9_]{1,64}$/.test(username);
  return { kind: "text", chatId, username: isName ? username : null, text: text.slice(0, TEXT_LENGTH_MAX) };
}

function readPress({ id: pressId, from, message, data }: Fields): Read {
  const { chat, message_id: messageId } = fieldsOf(message);
  const chatId = privateChatOf(chat, from);
  if (chatId === null) return ignored("not a private chat with a person");
  if (typeof pressId !== "string" || pressId.length > 64) return ignored("a button without an id");
  if (!isCount(messageId) || typeof data !== "string") return ignored("a button without its message");
  return { kind: "press", chatId, messageId, pressId, data };
}

/** No longer text is a command or a code. */
const TEXT_LENGTH_MAX = 200;

/** The id of a chat with one person alone, which is that person's id too; null for any other chat. */
function privateChatOf(chat: unknown, from: unknown): string | null {
  const { id, type } = fieldsOf(chat);
  const { id: sender, is_bot: isBot } = fieldsOf(from);
  return type === "private" && isCount(id) && id > 0 && sender === id && isBot !== true ? String(id) : null;
}

/** A command to the bot, and what follows it; null for any other text. */
export function readCommand(text: string): { readonly name: string; readonly rest: string } | null {
  const [, name, rest = ""] = /^\/([a-z]{1,32})(?:@\w{1,64})?(?:\s+(\S.*))?$/s.exec(text.trim()) ?? [];
  return name === undefined ? null : { name, rest };
}

/** What can be decided in a chat. */
export const CHAT_DECISIONS = ["release", "refund"] as const;
export type ChatDecision = (typeof CHAT_DECISIONS)[number];

/** What a button does: it asks about a decision, makes it, or goes back to the choice. */
const VERBS = ["ask-release", "ask-refund", "release", "refund", "back"] as const;

/**
 * A button below a notice of one escalation. Which escalation that is follows from the notice, which must be to the person
 * whose chat it is: so nothing that a client writes into a button leads to another.
 */
export type Button = {
  readonly verb: (typeof VERBS)[number];
  readonly noticeId: string;
  /** The version of the warrant that was shown: another state is not decided. */
  readonly version: number;
};

/** At most 64 bytes, as the bot API asks. */
export const formatButton = ({ verb, noticeId, version }: Button): string => `${verb}:${noticeId}:${version}`;

export function parseButton(data: string): Button | null {
  const [name, noticeId = "", digits = "", ...more] = data.split(":");
  const verb = VERBS.find((known) => known === name);
  if (verb === undefined || !isId("notice", noticeId) || more.length > 0) return null;
  return /^[1-9][0-9]{0,14}$/.test(digits) ? { verb, noticeId, version: Number(digits) } : null;
}

/**
 * Why nobody decides on a warrant in a chat; null where somebody may. A chat proves no passkey, so it decides nothing where the
 * organisation asks for one: beside the password, or from the threshold on.
 */
export function refuseInChat(
  { messagingDecisions, secondFactor, passkeyThreshold }: Organisation,
  warrant: Pick<Warrant, "amount" | "asset">,
): Refusal | null {
  if (!messagingDecisions)
    return refuse("user_session_required", "Your organisation does not allow decisions in a chat.");
  if (secondFactor)
    return refuse(
      "second_factor_required",
      "Your organisation asks for a passkey beside the password, and a chat proves none.",
    );
  return reachesThreshold(passkeyThreshold, warrant)
    ? refuse("passkey_required", "This amount reaches the passkey threshold, so it needs your passkey.")
    : null;
}
