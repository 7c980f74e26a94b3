import type { Escalation } from "../../core/escalation.ts";
import type { ChatDecision } from "../../core/messaging.ts";
import { displayAmount, shareOf } from "../../core/money.ts";
import { isoTime } from "../../core/time.ts";
import type { Warrant } from "../../core/warrant.ts";
import type { Context } from "../context.ts";

/** What the bot says of an escalation, as plain text. */

type About = { readonly escalation: Escalation; readonly warrant: Warrant };

/** The bot API takes 4,096 characters. What does not fit is left out in the middle, so that the link at the end stays. */
const TEXT_LENGTH_MAX = 4_000;
const END_LENGTH = 500;

export function fit(text: string): string {
  if (text.length <= TEXT_LENGTH_MAX) return text;
  const start = text.slice(0, TEXT_LENGTH_MAX - END_LENGTH);
  // The cut may be in the middle of a character.
  return `${start}\n…\n${text.slice(-END_LENGTH)}`.toWellFormed();
}

const inMode = ({ mode }: Warrant, text: string): string => (mode === "sandbox" ? `SANDBOX: ${text}` : text);

const linkTo = ({ baseUrl }: Context, path: string): string => new URL(baseUrl).origin + path;

/** The question before a decision is made. */
export function askingText(decision: ChatDecision, warrant: Warrant): string {
  const amount = displayAmount(warrant.amount, warrant.asset);
  const { payee, id } = warrant;
  return inMode(
    warrant,
    decision === "release"
      ? `Release ${amount} to ${payee}?\n\nAll of it is paid. (${id})`
      : `Refund ${amount}?\n\nIt returns to available, and nothing is paid to ${payee}. (${id})`,
  );
}

/** Why nothing was decided, and where it can be. */
export const refusedText = (ctx: Context, { escalation, warrant }: About, why: string): string =>
  [inMode(warrant, `Nothing was decided. ${why}`), "", whereTo(ctx, escalation)].join("\n");

const whereTo = (ctx: Context, { id }: Escalation): string =>
  `Decide it in the console: ${linkTo(ctx, `/console/escalations/${id}`)}`;

/** What was decided, by whom and when. */
export function decidedText(ctx: Context, about: About, by: string | null): string {
  const { escalation, warrant } = about;
  const at = isoTime(escalation.resolvedAt ?? escalation.createdAt).replace(/T(\d\d:\d\d).*$/, " at $1 UTC");
  return [
    inMode(warrant, whatWasDecided(about)),
    "",
    `By ${by ?? "the system"}, on ${at}.`,
    linkTo(ctx, `/console/warrants/${warrant.id}`),
  ].join("\n");
}

function whatWasDecided({ escalation, warrant }: About): string {
  const amount = displayAmount(warrant.amount, warrant.asset);
  switch (escalation.decision) {
    case "release":
      return `Released: ${amount} was paid to ${warrant.payee}.`;
    case "partial_release": {
      const share = displayAmount(shareOf(warrant.amount, escalation.releasedBps ?? 0), warrant.asset);
      return `Released in part: ${share} of ${amount} was paid to ${warrant.payee}.`;
    }
    case "refund":
      return `Refunded: ${amount} returned to available, and nothing was paid to ${warrant.payee}.`;
    default:
      return `No decision is needed any more: the warrant of ${amount} to ${warrant.payee} is ${warrant.state}.`;
  }
}
