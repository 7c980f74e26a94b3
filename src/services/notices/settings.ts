import { isRefusal, type Refusal, refuseField } from "../../core/errors.ts";
import {
  type Channel,
  isTimeZone,
  type Notice,
  type NoticeSettings,
  noticeSettingsOf,
} from "../../core/notice.ts";
import type { PushSubscription } from "../../core/push.ts";
import { ACCESS, type PersonCaller } from "../../core/roles.ts";
import { type Audited, executeAudited } from "../audited.ts";
import { callerNow, credentialOf } from "../caller-now.ts";
import type { Context } from "../context.ts";

/** What a person chose, where they are notified, and the last notices to them. */
export type OwnNotices = {
  readonly settings: NoticeSettings;
  readonly devices: readonly PushSubscription[];
  readonly recent: readonly Notice[];
};

const RECENT_MAX = 20;

export const readOwnNotices = (
  { store }: Context,
  { userId, organisationId }: PersonCaller,
): Promise<OwnNotices> =>
  store.read(async ({ notices }) => ({
    settings: (await notices.settingsOf(userId)) ?? noticeSettingsOf(userId, organisationId),
    devices: await notices.pushSubscriptionsOf(userId),
    recent: await notices.ofUser(userId, RECENT_MAX),
  }));

export type NoticeChoice = {
  /** Of the channels that the person was asked about. What holds for the others stays. */
  readonly channels: Readonly<Partial<Record<Channel, boolean>>>;
  readonly sandbox: boolean;
  /** Times of the day as `08:30`; both empty for all hours. */
  readonly from: string;
  readonly until: string;
  readonly timeZone: string;
};

/** Keeps what a person chose for themselves. */
export async function chooseNotices(
  ctx: Context,
  caller: PersonCaller,
  choice: NoticeChoice,
): Promise<NoticeSettings | Refusal> {
  const hours = hoursOf(choice);
  if (isRefusal(hours)) return hours;
  if (choice.timeZone.length > 64 || !isTimeZone(choice.timeZone))
    return refuseField("time_zone", "must be the name of a time zone, such as Europe/Berlin or UTC");
  const { userId, organisationId } = caller;
  const { channels, sandbox, timeZone } = choice;
  return executeAudited(
    ctx,
    { kind: "user", id: userId },
    {
      scope: caller,
      needs: { ...credentialOf(caller), noticeSettings: userId },
      decide({ noticeSettings: before, ...snapshot }, now): Audited<NoticeSettings> {
        const present = callerNow(caller, ACCESS.keepOwnSignIn, snapshot, now);
        if (isRefusal(present)) return { answer: present };
        const held = before ?? noticeSettingsOf(userId, organisationId);
        const row: NoticeSettings = { ...held, ...channels, sandbox, ...hours, timeZone };
        if (before && Bun.deepEquals(before, row)) return { answer: row };
        return {
          answer: row,
          put: [{ kind: "noticeSettings", before, row }],
          entries: [{ action: "notice_settings.changed", subject: userId, before, after: row }],
        };
      },
    },
  );
}

function hoursOf({
  from,
  until,
}: NoticeChoice): Pick<NoticeSettings, "fromMinute" | "untilMinute"> | Refusal {
  if (from === "" && until === "") return { fromMinute: null, untilMinute: null };
  const [fromMinute, untilMinute] = [from, until].map(minuteOf);
  if (fromMinute == null)
    return refuseField("from", "must be a time of the day, such as 08:00; leave both empty for all hours");
  if (untilMinute == null)
    return refuseField("until", "must be a time of the day, such as 18:00; leave both empty for all hours");
  return fromMinute === untilMinute
    ? refuseField("until", "must be another time than the first; leave both empty for all hours")
    : { fromMinute, untilMinute };
}

function minuteOf(text: string): number | null {
  const [, hour, minute] = /^([01]\d|2[0-3]):([0-5]\d)$/.exec(text) ?? [];
  return hour === undefined ? null : Number(hour) * 60 + Number(minute);
}

/** A minute of the day as a form has it; empty for none. */
export const timeOfDay = (minute: number | null): string =>
  minute === null
    ? ""
    : `${String(Math.floor(minute / 60)).padStart(2, "0")}:${String(minute % 60).padStart(2, "0")}`;
