import type { Escalation } from "../../core/escalation.ts";
import { displayAmount } from "../../core/money.ts";
import type { Notice, NoticeAbout, Words } from "../../core/notice.ts";
import { isoTime } from "../../core/time.ts";
import type { User } from "../../core/user.ts";
import type { Warrant } from "../../core/warrant.ts";
import type { Reader } from "../../store/reader.ts";
import type { Context } from "../context.ts";

/** @param oneTimeLink of a notice that has one */
export async function composeNotice(
  ctx: Context,
  notice: Notice,
  user: User,
  oneTimeLink: string | null,
): Promise<Words> {
  const origin = new URL(ctx.baseUrl).origin;
  const { subject, lines, to } = await ctx.store.read(async (reader) => wordsOf(reader, notice, oneTimeLink));
  const isAccount = notice.about.kind === "password_reset" || notice.about.kind === "new_sign_in";
  return {
    subject: notice.mode === "sandbox" ? `SANDBOX: ${subject}` : subject,
    lines,
    link: to.startsWith("/") ? origin + to : to,
    why: isAccount
      ? `It is about your account ${user.email} at ${origin}.`
      : `You choose what you hear of, and when: ${origin}/console/settings/notices`,
  };
}

type Parts = { readonly subject: string; readonly lines: readonly string[]; readonly to: string };

function wordsOf(reader: Reader, notice: Notice, link: string | null): Promise<Parts> | Parts {
  const { about } = notice;
  switch (about.kind) {
    case "escalations":
      return escalationWords(reader, notice, about);
    case "events_lost":
      return {
        subject: "A webhook endpoint lost an event",
        lines: [
          `Every attempt of a delivery to the endpoint ${about.webhookId} failed, and it is not tried again.`,
          "Once the endpoint works, recover what it lost, or run `holdfast webhooks recover`.",
        ],
        to: "/docs/webhooks",
      };
    case "trouble":
      return {
        subject: `Holdfast needs attention: ${about.name}`,
        lines: [about.message, "You hear of it again after a day, while it goes on."],
        to: "/readyz",
      };
    case "password_reset":
      return {
        subject: "Choose a new password",
        lines: [
          "An administrator made this link, with which you choose a new password.",
          `It works once, until ${isoTime(about.expiresAt)}. Whoever has it can sign in as you: do not pass it on.`,
        ],
        to: link ?? "/console/sign-in",
      };
    case "new_sign_in":
      return {
        subject: "A sign-in from a new place",
        lines: [
          `Somebody signed in as you at ${isoTime(about.at)}, from the network ${about.network}.`,
          ...(about.agent === null ? [] : [`The browser called itself ${about.agent}`]),
          "If it was you, there is nothing to do. If not, sign out everywhere, and change your password.",
        ],
        to: "/account",
      };
  }
}

type Waiting = { readonly escalation: Escalation; readonly warrant: Warrant };

async function escalationWords(
  { escalations, warrants }: Reader,
  scope: Notice,
  { escalationIds, count, waitedHours }: Extract<NoticeAbout, { kind: "escalations" }>,
): Promise<Parts> {
  const waiting: Waiting[] = [];
  for (const id of escalationIds) {
    const escalation = await escalations.get(id);
    const warrant = escalation && (await warrants.get(scope, escalation.warrantId));
    if (escalation && warrant && escalation.status !== "resolved") waiting.push({ escalation, warrant });
  }
  const others = count - escalationIds.length;
  const all = waiting.length + others;
  const since = waitedHours === 0 ? "" : ` for ${waitedHours} hours`;
  const [one] = waiting;
  if (one && all === 1) {
    return {
      subject: `${displayAmount(one.warrant.amount, one.warrant.asset)} waits for your decision${since}`,
      lines: lineOf(one),
      to: `/console/escalations/${one.escalation.id}`,
    };
  }
  return {
    subject: `${all} escalations wait for a decision${since}`,
    lines: [
      ...waiting.flatMap((each) => [...lineOf(each), ""]),
      ...(others > 0 ? [`And ${others} more, as far as they still wait.`] : []),
    ],
    to: "/console/escalations",
  };
}

const lineOf = ({ escalation, warrant }: Waiting): readonly string[] => [
  `${displayAmount(warrant.amount, warrant.asset)} to ${warrant.payee} (${warrant.id})`,
  `Why: ${escalation.reasonCodes.join(", ") || "its policy asks a person"}. The amount stays held until a person decides.`,
];
