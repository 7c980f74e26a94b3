import type { Escalation } from "./escalation.ts";
import type { Mode } from "./roles.ts";
import { HOUR_MS, MINUTE_MS } from "./time.ts";

/** Notices: what Holdfast tells a person without being asked (docs/notices, "Notices"). */

/** By what a notice can reach a person. */
export const CHANNELS = ["email", "push", "messaging"] as const;
export type Channel = (typeof CHANNELS)[number];

/** What a notice is about. It names things, and its words are written when it is sent. */
export type NoticeAbout =
  /** Escalations that wait: the first of them by id, and how many they are. `waitedHours` is 0 for new ones, else it is a reminder. */
  | {
      readonly kind: "escalations";
      readonly escalationIds: readonly string[];
      readonly count: number;
      readonly waitedHours: number;
    }
  /** The same of escalations that were disputed: they wait for an admin or owner who did not raise the dispute. */
  | {
      readonly kind: "disputes";
      readonly escalationIds: readonly string[];
      readonly count: number;
      readonly waitedHours: number;
    }
  /** An endpoint of webhooks lost an event: all attempts of a delivery failed. */
  | { readonly kind: "events_lost"; readonly webhookId: string }
  /** The service cannot do some of its work, as `/readyz` says, or a backup failed. */
  | { readonly kind: "trouble"; readonly name: string; readonly message: string }
  /** A link with which its reader chooses a new password. */
  | { readonly kind: "password_reset"; readonly expiresAt: number }
  /** A link with which its reader, who was invited, chooses a first password; `invitedBy` is null for the machine's operator. */
  | { readonly kind: "invitation"; readonly invitedBy: string | null; readonly expiresAt: number }
  /** Somebody signed in as its reader from a network that was not seen before. */
  | {
      readonly kind: "new_sign_in";
      readonly at: number;
      readonly network: string;
      readonly agent: string | null;
    }
  /** Its reader asked for it, to see whether notices arrive. */
  | { readonly kind: "test" };

/** What is about a person's own account, or was asked for by them. It goes out at any hour, whatever they chose. */
export const isPersonal = ({ kind }: NoticeAbout): boolean =>
  kind === "password_reset" || kind === "invitation" || kind === "new_sign_in" || kind === "test";

/** The statuses in which a notice is still to be sent. */
export const UNENDED_NOTICE_STATUSES = ["pending", "failed"] as const;
export const NOTICE_STATUSES = [...UNENDED_NOTICE_STATUSES, "delivered", "exhausted", "dropped"] as const;
/** `failed`: will be tried again. `exhausted`: will not. `dropped`: what it was about had ended before it was sent. */
export type NoticeStatus = (typeof NOTICE_STATUSES)[number];

/** A notice to one person by one channel, with what became of it. */
export type Notice = {
  readonly id: string;
  readonly organisationId: string;
  readonly mode: Mode;
  readonly userId: string;
  readonly channel: Channel;
  /** What it is about in a few characters, by which a second notice of the same is found. */
  readonly subject: string;
  readonly about: NoticeAbout;
  /** A one-time link, encrypted; null where there is none, and once the notice has ended. */
  readonly encryptedLink: string | null;
  readonly status: NoticeStatus;
  readonly attempts: number;
  /** What the other side said to the last attempt, or why there was no answer. */
  readonly answer: string | null;
  readonly durationMs: number | null;
  /** When the attempt that is under way counts as cut off; null where none is. */
  readonly claimedUntil: number | null;
  readonly nextAttemptAt: number | null;
  readonly createdAt: number;
};

/** The words of a notice, for every channel. */
export type Words = {
  /** What it is about, in one line. */
  readonly subject: string;
  /** More of it, as plain lines; an empty one parts paragraphs. */
  readonly lines: readonly string[];
  /** Where its reader goes on. */
  readonly link: string;
  /** Why its reader gets it. */
  readonly why: string;
};

/** An escalation of which people are to hear: now, and after a day and three days while it waits. */
export type PlannedNotice = {
  /** The escalation's id. */
  readonly id: string;
  readonly organisationId: string;
  readonly mode: Mode;
  /** How many of its notices were made. */
  readonly made: number;
  /** Epoch milliseconds; 0 for the first notice, so that no clock that is set back delays it. */
  readonly dueAt: number;
  readonly createdAt: number;
};

/** What a person chose about notices, such as whether they go by each channel. `noticeSettingsOf` has what holds without a choice. */
export type NoticeSettings = Readonly<Record<Channel, boolean>> & {
  readonly userId: string;
  readonly organisationId: string;
  /** Whether they hear of the sandbox too. */
  readonly sandbox: boolean;
  /** The hours in which notices come: minutes of the day in their time zone, from the first until the second; null for all. */
  readonly fromMinute: number | null;
  readonly untilMinute: number | null;
  readonly timeZone: string;
};

export const noticeSettingsOf = (userId: string, organisationId: string): NoticeSettings => ({
  userId,
  organisationId,
  email: true,
  push: true,
  messaging: true,
  sandbox: true,
  fromMinute: null,
  untilMinute: null,
  timeZone: "UTC",
});

/** After how many hours of waiting the notices of an escalation are made. */
const WAITED_HOURS: readonly number[] = [0, 24, 72];

/** The ids that one notice names at most. */
export const NAMED_MAX = 10;

/** The plan of an escalation that is raised now. */
export const planOf = ({ id, organisationId, mode, createdAt }: Escalation): PlannedNotice => ({
  id,
  organisationId,
  mode,
  made: 0,
  dueAt: 0,
  createdAt,
});

/** The plan of an escalation that is disputed now: others hear of it, from the beginning. */
export const planOfDispute = (escalation: Escalation, now: number): PlannedNotice => ({
  ...planOf(escalation),
  createdAt: now,
});

/**
 * What follows where the notice of a plan is made now: after how many hours of waiting it is made, and the plan of the next one;
 * null after the last one. A notice whose time has passed meanwhile is not made up for.
 */
export function nextOfPlan(
  plan: PlannedNotice,
  now: number,
): { readonly hours: number; readonly next: PlannedNotice | null } {
  const passed = WAITED_HOURS.filter((hours) => plan.createdAt + hours * HOUR_MS <= now).length;
  const made = Math.max(plan.made + 1, passed);
  const hours = WAITED_HOURS[made];
  return {
    hours: WAITED_HOURS[made - 1] ?? 0,
    next: hours === undefined ? null : { ...plan, made, dueAt: plan.createdAt + hours * HOUR_MS },
  };
}

/** An attempt that takes longer counts as cut off. It ends by itself before. */
export const NOTICE_CLAIM_MS = 2 * MINUTE_MS;

/** The waits after the first, second, … failure. After the last attempt the notice is given up. */
const WAITS_MS = [MINUTE_MS, 5 * MINUTE_MS, 30 * MINUTE_MS, 2 * HOUR_MS, 6 * HOUR_MS];
export const NOTICE_ATTEMPTS_MAX = WAITS_MS.length + 1;

/** A notice is never planned further ahead: a day for the hours that a person chose, and the longest wait. */
export const NOTICE_AHEAD_MAX_MS = 25 * HOUR_MS + 6 * HOUR_MS;

type NewNotice = Pick<
  Notice,
  "id" | "organisationId" | "mode" | "userId" | "channel" | "subject" | "about" | "createdAt"
>;

/** A notice that nobody has tried to send. It is due at once. */
export const newNotice = (given: NewNotice, encryptedLink: string | null = null): Notice => ({
  ...given,
  encryptedLink,
  status: "pending",
  attempts: 0,
  answer: null,
  durationMs: null,
  claimedUntil: null,
  nextAttemptAt: given.createdAt,
});

/** How an attempt ended. `never`: the other side said that it will never take it. */
export type NoticeResult = {
  readonly outcome: "delivered" | "failed" | "never";
  readonly answer: string;
  readonly durationMs: number | null;
};

/** An attempt that a crash cut off: whether it arrived is not known, so it is made again. */
const NOTICE_CUT_OFF: NoticeResult = { outcome: "failed", answer: "cut_off", durationMs: null };

/** The notice with its next attempt claimed; null where none is due. */
export const claimNotice = (notice: Notice, now: number): Notice | null =>
  notice.nextAttemptAt === null || notice.nextAttemptAt > now
    ? null
    : {
        ...notice,
        attempts: notice.attempts + 1,
        claimedUntil: now + NOTICE_CLAIM_MS,
        nextAttemptAt: null,
      };

/** The notice after its attempt. A link is forgotten as soon as nobody needs it. */
export function endNotice(notice: Notice, result: NoticeResult, now: number): Notice {
  const wait = result.outcome === "failed" ? WAITS_MS[notice.attempts - 1] : undefined;
  const status = result.outcome === "delivered" ? "delivered" : wait === undefined ? "exhausted" : "failed";
  return {
    ...notice,
    status,
    answer: result.answer,
    durationMs: result.durationMs,
    encryptedLink: status === "failed" ? notice.encryptedLink : null,
    claimedUntil: null,
    nextAttemptAt: wait === undefined ? null : now + wait,
  };
}

/** The notice of something that has ended meanwhile: nobody needs to hear of it. */
export const dropNotice = (notice: Notice): Notice => ({
  ...notice,
  status: "dropped",
  encryptedLink: null,
  nextAttemptAt: null,
});

/** As with webhooks: a cut-off attempt is ended, and a time that a clock ahead has written is brought back. Null where nothing is wrong. */
export function rescheduleNotice(notice: Notice, now: number): Notice | null {
  const { claimedUntil, nextAttemptAt } = notice;
  if (claimedUntil !== null && (claimedUntil <= now || claimedUntil > now + NOTICE_CLAIM_MS))
    return endNotice(notice, NOTICE_CUT_OFF, now);
  return nextAttemptAt !== null && nextAttemptAt > now + NOTICE_AHEAD_MAX_MS
    ? { ...notice, nextAttemptAt: now }
    : null;
}

const DAY_MINUTES = 1_440;

/** The minute of the day in a time zone. */
function minuteIn(timeZone: string, at: number): number {
  const parts = new Intl.DateTimeFormat("en-GB", {
    timeZone,
    hour: "2-digit",
    minute: "2-digit",
    hourCycle: "h23",
  }).formatToParts(at);
  const part = (type: string): number => Number(parts.find((one) => one.type === type)?.value ?? 0);
  return part("hour") * 60 + part("minute");
}

/** Whether the system knows a time zone of that name. */
export function isTimeZone(name: string): boolean {
  try {
    return new Intl.DateTimeFormat("en-GB", { timeZone: name }).resolvedOptions().timeZone !== "";
  } catch {
    return false;
  }
}

/** When a notice may reach the person: now within their hours, else when these begin. Epoch milliseconds. */
export function withinHours({ fromMinute, untilMinute, timeZone }: NoticeSettings, now: number): number {
  if (fromMinute === null || untilMinute === null || fromMinute === untilMinute) return now;
  const length = (untilMinute - fromMinute + DAY_MINUTES) % DAY_MINUTES;
  let at = now;
  // Where the clocks change on the way, the first answer is an hour early or late, and is corrected.
  for (let round = 0; round < 3; round++) {
    const since = (minuteIn(timeZone, at) - fromMinute + DAY_MINUTES) % DAY_MINUTES;
    if (since < length) return at === now ? now : at - since * MINUTE_MS;
    at = Math.floor(at / MINUTE_MS) * MINUTE_MS + (DAY_MINUTES - since) * MINUTE_MS;
  }
  return at;
}
