import type { BotApi } from "../../platform/bot-api.ts";
import type { Recording } from "../audited.ts";
import type { SendNotice } from "../context.ts";
import { noticeMessage } from "./decide.ts";
import { unlinkChat } from "./link.ts";

/** Sends a notice to the chat that its person has linked. Who has blocked the bot has unlinked the chat. */
export const chatSender =
  (ctx: Recording, bot: BotApi): SendNotice =>
  async (notice, { id }, words) => {
    const account = await ctx.store.read(({ messaging }) => messaging.accountOf(id));
    if (account === null) return { outcome: "never", answer: "no_chat_linked", durationMs: null };
    const message = await noticeMessage(ctx, account, notice, words);
    const { outcome, ...result } = await bot.send(account.chatId, message);
    if (outcome !== "blocked") return { ...result, outcome };
    await unlinkChat(ctx, account);
    return { ...result, outcome: "never" };
  };
