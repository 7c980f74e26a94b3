import { isRefusal, type Refusal, refuse } from "../../core/errors.ts";
import {
  type ChatText,
  type MessagingAccount,
  parseUpdate,
  readCode,
  readCommand,
  type Update,
} from "../../core/messaging.ts";
import { HOUR_MS } from "../../core/time.ts";
import type { Context, Messaging } from "../context.ts";
import { pressButton } from "./decide.ts";
import { type Linked, linkChat, unlinkChat } from "./link.ts";

/**
 * Takes an update of the bot, and works on it after the answer: what comes of it, the bot sends. What nobody needs is ignored.
 * Refused with `rate_limit_exceeded` where there is no place for it now.
 */
export async function takeUpdate(ctx: Context, text: string): Promise<Refusal | null> {
  const { messaging } = ctx;
  if (messaging === null) return null;
  const update = parseUpdate(text);
  if (update === null) {
    messaging.onIgnored("not an update");
    return null;
  }
  const account = update.kind === "ignored" ? null : await accountOf(ctx, update.chatId);
  const left = messaging.intake.take(update, account !== null, () => workOnce(ctx, messaging, update));
  if (left === "full")
    return refuse("rate_limit_exceeded", "Other updates of the messaging bot are being worked on.");
  if (left !== null) messaging.onIgnored(left);
  return null;
}

const accountOf = ({ store }: Context, chatId: string): Promise<MessagingAccount | null> =>
  store.read((reader) => reader.messaging.accountOfChat(chatId));

/** How long instances remember an update: the bot API sends one again where it got no answer. */
const REMEMBERED_MS = HOUR_MS;

/** Each instance remembers its own updates; one that is sent again may come to another. */
async function workOnce(ctx: Context, messaging: Messaging, update: Update): Promise<void> {
  if (ctx.shared && !(await ctx.shared.useOnce(`update of the bot ${update.id}`, REMEMBERED_MS))) {
    return messaging.onIgnored("known already");
  }
  return workOn(ctx, messaging, update);
}

async function workOn(ctx: Context, { bot }: Messaging, update: Update): Promise<void> {
  if (update.kind === "press") return pressButton(ctx, bot, update);
  if (update.kind !== "text") return;
  const { outcome } = await bot.send(update.chatId, { text: await replyTo(ctx, update), buttons: [] });
  const account = outcome === "blocked" ? await accountOf(ctx, update.chatId) : null;
  if (account) await unlinkChat(ctx, account);
}

async function replyTo(ctx: Context, { chatId, username, text }: ChatText): Promise<string> {
  const account = await accountOf(ctx, chatId);
  const command = readCommand(text);
  if (command?.name === "stop")
    return account !== null && (await unlinkChat(ctx, account)) === true
      ? "This chat is not linked any more. Nothing is sent here."
      : "This chat is not linked to anybody.";
  const code = readCode(command === null ? text : command.name === "start" ? command.rest : "");
  if (code === null) return account === null ? HELP : linkedText(await linkedOf(ctx, account));
  const linked = await linkChat(ctx, { chatId, username }, code);
  return isRefusal(linked) ? linked.message : linkedText(linked);
}

const HELP =
  "To link this chat, make a code in the console, under Notices, and send it here. It works for ten minutes.";

async function linkedOf({ store }: Context, { userId, organisationId }: MessagingAccount): Promise<Linked> {
  return store.read(async ({ users, organisations }) => {
    const user = await users.get(userId);
    const organisation = await organisations.get(organisationId);
    if (!user || !organisation) throw new Error(`the chat of ${userId} belongs to nobody`);
    return { user, organisation };
  });
}

const linkedText = ({ user, organisation }: Linked): string =>
  `This chat is linked to ${user.name} (${user.email}), of ${organisation.name}. Notices come here. Send /stop to unlink it.`;
