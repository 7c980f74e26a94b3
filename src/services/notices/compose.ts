import type { Escalation } from "../../core/escalation.ts";
import { displayAmount } from "../../core/money.ts";
import { isPersonal, type Notice, type NoticeAbout, type Words } from "../../core/notice.ts";
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
  const { subject, lines, to } = await ctx.store.read(async (reader) =>
    wordsOf(reader, notice, user, oneTimeLink),
  );
  return {
    subject: notice.mode === "sandbox" ? `SANDBOX: ${subject}` : subject,
    lines,
    link: to.startsWith("/") ? origin + to : to,
    why: isPersonal(notice.about)
      ? `It is about your account ${user.email} at ${origin}.`
      : `You choose what you hear of, and when: ${origin}/console/settings/notices`,
  };
}

type Parts = { readonly subject: string; readonly lines: readonly string[]; readonly to: string };

function wordsOf(reader: Reader, notice: Notice, user: User, link: string | null): Promise<Parts> | Parts {
  const { about } = notice;
  switch (about.kind) {
    case "escalations":
    case "disputes":
      return waitingWords(reader, notice, about);
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
    case "invitation":
      return invitationWords(reader, user, about, link);
    case "new_sign_in":
      return {
        subject: "A sign-in from a new place",
        lines: [
          `Somebody signed in as you at ${isoTime(about.at)}, from the network ${about.network}.`,
          ...(about.agent === null ? [] : [`The browser called itself ${about.agent}`]),
          "If it was you, there is nothing to do. If not, sign out everywhere, and change your password.",
        ],
        to: "/console/account",
      };
    case "test":
      return {
        subject: "A test notice",
        lines: ["You asked for it. Other notices reach you in the same way."],
        to: "/console/settings/notices",
      };
  }
}

type AboutOf<Kind extends NoticeAbout["kind"]> = Extract<NoticeAbout, { readonly kind: Kind }>;

async function invitationWords(
  { organisations, users }: Reader,
  user: User,
  { invitedBy, expiresAt }: AboutOf<"invitation">,
  link: string | null,
): Promise<Parts> {
  const organisation = (await organisations.get(user.organisationId))?.name ?? user.organisationId;
  const inviter = invitedBy === null ? null : await users.get(invitedBy);
  const who = inviter ? `${inviter.name} (${inviter.email})` : "The operator of this Holdfast";
  return {
    subject: `You are invited to ${organisation}`,
    lines: [
      `${who} invites you to ${organisation}, as ${user.role}. There people and agents hold money until what was promised is delivered.`,
      `By the link below you choose a password; you then sign in with it and ${user.email}.`,
      `It works once, until ${isoTime(expiresAt)}. Whoever has it can sign in as you: do not pass it on.`,
      "If you expected no invitation, there is nothing to do.",
    ],
    to: link ?? "/console/sign-in",
  };
}

type Waiting = { readonly escalation: Escalation; readonly warrant: Warrant };

/** The status in which an escalation waits for the readers of a notice. */
export const WAITS_AS = { escalations: "open", disputes: "disputed" } as const;

async function waitingWords(
  { escalations, warrants, users }: Reader,
  scope: Notice,
  { kind, escalationIds, count, waitedHours }: AboutOf<"escalations" | "disputes">,
): Promise<Parts> {
  const waiting: Waiting[] = [];
  const names = new Map<string, string>();
  for (const id of escalationIds) {
    const escalation = await escalations.get(id);
    const warrant = escalation && (await warrants.get(scope, escalation.warrantId));
    if (!escalation || !warrant || escalation.status !== WAITS_AS[kind]) continue;
    waiting.push({ escalation, warrant });
    const { raisedBy } = escalation;
    if (raisedBy !== null) names.set(raisedBy, (await users.get(raisedBy))?.name ?? raisedBy);
  }
  const others = count - escalationIds.length;
  const all = waiting.length + others;
  const since = waitedHours === 0 ? "" : ` for ${waitedHours} hours`;
  const [one] = waiting;
  if (one && all === 1) {
    const amount = displayAmount(one.warrant.amount, one.warrant.asset);
    return {
      subject:
        kind === "disputes"
          ? `${amount} is disputed, and waits for you as a second person${since}`
          : `${amount} waits for your decision${since}`,
      lines: linesOf(one, names),
      to: `/console/escalations/${one.escalation.id}`,
    };
  }
  return {
    subject:
      kind === "disputes"
        ? `${all} disputes wait for a second person${since}`
        : `${all} escalations wait for a decision${since}`,
    lines: [
      ...waiting.flatMap((each) => [...linesOf(each, names), ""]),
      ...(others > 0 ? [`And ${others} more, as far as they still wait.`] : []),
    ],
    to: "/console/escalations",
  };
}

/** @param names of those who raised disputes, by their ids */
function linesOf({ escalation, warrant }: Waiting, names: ReadonlyMap<string, string>): readonly string[] {
  const { raisedBy, note, reasonCodes } = escalation;
  const amount = `${displayAmount(warrant.amount, warrant.asset)} to ${warrant.payee} (${warrant.id})`;
  const why = `Why: ${reasonCodes.join(", ") || "its policy asks a person"}.`;
  if (raisedBy === null) return [amount, `${why} The amount stays held until a person decides.`];
  return [
    amount,
    `${names.get(raisedBy) ?? raisedBy} disputed it${note === null ? "." : `: ${note}`}`,
    `${why} The amount stays held until an admin or owner other than them decides.`,
  ];
}
