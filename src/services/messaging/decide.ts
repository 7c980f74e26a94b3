import { owesPasskey } from "../../core/auth-session.ts";
import { sha256 } from "../../core/canonical.ts";
import { isRefusal, type Refusal, refuse } from "../../core/errors.ts";
import type { Escalation } from "../../core/escalation.ts";
import {
  type Button,
  CHAT_DECISIONS,
  type ChatDecision,
  type ChatPress,
  formatButton,
  type MessagingAccount,
  parseButton,
  refuseInChat,
} from "../../core/messaging.ts";
import type { Notice, Words } from "../../core/notice.ts";
import type { Organisation } from "../../core/organisation.ts";
import { ACCESS, type ChatCaller, refuseAccess } from "../../core/roles.ts";
import type { User } from "../../core/user.ts";
import { refuseOtherVersion, type Warrant } from "../../core/warrant.ts";
import type { BotApi, BotButton, BotMessage } from "../../platform/bot-api.ts";
import type { Reader } from "../../store/reader.ts";
import { decisionsOn } from "../console/warrant-detail.ts";
import type { Context } from "../context.ts";
import type { Idempotency } from "../idempotency.ts";
import { composeNotice } from "../notices/compose.ts";
import { resolveEscalation } from "../warrants/resolve.ts";
import { askingText, decidedText, fit, refusedText } from "./words.ts";

/** Escalations that people decide by the buttons below a notice in their chat. */

/** An escalation as its reader's chat shows it. */
type Shown = {
  readonly notice: Notice;
  readonly user: User;
  readonly caller: ChatCaller;
  readonly organisation: Organisation;
  readonly escalation: Escalation;
  readonly warrant: Warrant;
};

const WORDS = { release: "Release", refund: "Refund" } as const satisfies Record<ChatDecision, string>;

/** The message of a notice. Below that of one escalation are buttons for what its reader may decide there. */
export async function noticeMessage(
  { store }: Pick<Context, "store">,
  account: MessagingAccount,
  notice: Notice,
  { subject, lines, link, why }: Words,
): Promise<BotMessage> {
  const shown = await store.read((reader) => readShown(reader, account, notice));
  const buttons = shown === null || shown.escalation.status === "resolved" ? [] : choicesOf(shown);
  return { text: fit([subject, "", ...lines, "", link, "", why].join("\n")), buttons };
}

const choicesOf = (shown: Shown): readonly BotButton[] =>
  CHAT_DECISIONS.filter((decision) => refuseAsking(shown, decision, null) === null).map((decision) =>
    buttonOf(shown, WORDS[decision], `ask-${decision}`),
  );

const buttonOf = ({ notice, warrant }: Shown, words: string, verb: Button["verb"]): BotButton => ({
  words,
  data: formatButton({ verb, noticeId: notice.id, version: warrant.version }),
});

/** What a notice of one escalation shows to the person whose chat it went to; null where it is of anything else, or theirs no more. */
async function readShown(reader: Reader, account: MessagingAccount, notice: Notice): Promise<Shown | null> {
  const { about, mode, organisationId, userId } = notice;
  const isTheirs = userId === account.userId && organisationId === account.organisationId;
  const isOfEscalations = about.kind === "escalations" || about.kind === "disputes";
  const [id] = isOfEscalations && about.count === 1 ? about.escalationIds : [];
  if (!isTheirs || id === undefined) return null;
  const escalation = await reader.escalations.get(id);
  const warrant = escalation && (await reader.warrants.get(notice, escalation.warrantId));
  const user = await reader.users.get(userId);
  const organisation = await reader.organisations.get(organisationId);
  if (!escalation || !warrant || !user || user.removedAt !== null || !organisation) return null;
  const { role } = user;
  const owes = owesPasskey(organisation, role, { passkeyProved: false });
  const caller: ChatCaller = {
    ...{ kind: "chat", chatId: account.chatId, userId, role, organisationId, mode, owesPasskey: owes },
  };
  return { notice, user, caller, organisation, escalation, warrant };
}

/**
 * Why the decision cannot be made in this chat; null where it can. The commit looks again.
 *
 * @param version of the warrant that was shown; null where it is shown now
 */
const refuseAsking = (
  { caller, organisation, escalation, warrant }: Shown,
  decision: ChatDecision,
  version: number | null,
): Refusal | null =>
  refuseInChat(organisation, warrant) ??
  refuseAccess(caller, ACCESS.resolveEscalation) ??
  refuseOtherVersion(warrant, version) ??
  (decisionsOn({ warrant, escalation }, caller).includes(decision)
    ? null
    : refuse("second_person_required", "An admin or owner who did not raise the dispute decides this one."));

/** Does what a button says, and writes its message anew. */
export async function pressButton(ctx: Context, bot: BotApi, press: ChatPress): Promise<void> {
  let said: string | null = "Something went wrong. Open the console.";
  try {
    const message = await messageAfter(ctx, press);
    if (typeof message === "string") said = message;
    else {
      const edited = await bot.edit(press.chatId, press.messageId, message);
      // What happened is said at least once, also where the message cannot be written anew.
      said = edited.outcome === "delivered" ? null : message.text.slice(0, PRESS_TEXT_MAX).toWellFormed();
    }
  } finally {
    await bot.answerPress(press.pressId, said);
  }
}

/** The bot API takes no longer answer to a press. */
const PRESS_TEXT_MAX = 200;

/** The message after the press; or what is said where there is nothing to write. */
async function messageAfter(ctx: Context, { chatId, data }: ChatPress): Promise<BotMessage | string> {
  const button = parseButton(data);
  if (button === null) return "This button is not known.";
  const read = () =>
    ctx.store.read(async (reader) => {
      const account = await reader.messaging.accountOfChat(chatId);
      if (!account) return "This chat is not linked to anybody.";
      const notice = await reader.notices.get(button.noticeId);
      const shown = notice && (await readShown(reader, account, notice));
      return shown ? { account, shown } : "This message is too old. Open the console.";
    });
  const found = await read();
  if (typeof found === "string") return found;
  const { account, shown } = found;
  if (shown.escalation.status === "resolved") return decidedMessage(ctx, shown);
  const { verb, version } = button;
  if (verb === "back") {
    const words = await composeNotice(ctx, shown.notice, shown.user, null);
    return noticeMessage(ctx, account, shown.notice, words);
  }
  const asked = CHAT_DECISIONS.find((decision) => verb === `ask-${decision}`);
  if (asked !== undefined) {
    const refusal = refuseAsking(shown, asked, version);
    return refusal ? refusedMessage(ctx, shown, refusal) : askingMessage(shown, asked);
  }
  const refusal = await decide(ctx, shown, verb as ChatDecision, version);
  const after = await read();
  if (typeof after === "string") return after;
  return refusal && after.shown.escalation.status !== "resolved"
    ? refusedMessage(ctx, after.shown, refusal)
    : decidedMessage(ctx, after.shown);
}

/** The same decision as at the console, on the version that was shown. Pressed again, it is answered as before. */
async function decide(
  ctx: Context,
  { caller, notice, escalation }: Shown,
  decision: ChatDecision,
  version: number,
): Promise<Refusal | null> {
  const { id } = escalation;
  const idempotency: Idempotency = {
    key: `chat ${notice.id} ${decision}`,
    fingerprint: sha256(`${caller.userId} chat ${id} ${decision} ${version}`),
  };
  const input = { id, decision, releasedBps: null, note: null, ifMatch: version };
  const answer = await resolveEscalation(ctx, caller, input, idempotency);
  return isRefusal(answer) ? answer : null;
}

const askingMessage = (shown: Shown, decision: ChatDecision): BotMessage => ({
  text: fit(askingText(decision, shown.warrant)),
  buttons: [
    buttonOf(shown, `Yes, ${WORDS[decision].toLowerCase()}`, decision),
    buttonOf(shown, "No", "back"),
  ],
});

const refusedMessage = (ctx: Context, shown: Shown, { message }: Refusal): BotMessage => ({
  text: fit(refusedText(ctx, shown, message)),
  buttons: [],
});

async function decidedMessage(ctx: Context, shown: Shown): Promise<BotMessage> {
  const { resolvedBy } = shown.escalation;
  const by = resolvedBy === null ? null : await ctx.store.read(({ users }) => users.get(resolvedBy));
  return { text: fit(decidedText(ctx, shown, by && (by.name || by.email))), buttons: [] };
}
