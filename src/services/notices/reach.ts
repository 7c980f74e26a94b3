import type { MessagingAccount } from "../../core/messaging.ts";
import { CHANNELS, type Channel, type NoticeSettings, noticeSettingsOf } from "../../core/notice.ts";
import type { PushSubscription } from "../../core/push.ts";
import type { NoticeReader } from "../../store/needs.ts";
import type { Context } from "../context.ts";

/** By what a person hears of things. */

/** The needs that load what a person chose, and where they are reached. */
export const reachNeeds = (userId: string) => ({
  noticeSettings: userId,
  messagingAccount: userId,
  pushSubscriptions: userId,
});

type Loaded = {
  readonly noticeSettings: NoticeSettings | null;
  readonly messagingAccount: MessagingAccount | null;
  readonly pushSubscriptions: readonly PushSubscription[];
};

/** What a reader of notices has besides the person. */
export const reachOf = (loaded: Loaded): Omit<NoticeReader, "user"> => ({
  settings: loaded.noticeSettings,
  chat: loaded.messagingAccount,
  devices: loaded.pushSubscriptions.length,
});

/** Whether a channel reaches the person at all. */
const REACHES: Readonly<Record<Channel, (reader: NoticeReader) => boolean>> = {
  email: () => true,
  push: ({ devices }) => devices > 0,
  messaging: ({ chat }) => chat !== null,
};

/** The channels by which a person hears of things. */
export function channelsTo({ notices }: Pick<Context, "notices">, reader: NoticeReader): readonly Channel[] {
  const chosen = reader.settings ?? noticeSettingsOf(reader.user.id, reader.user.organisationId);
  return CHANNELS.filter(
    (channel) => notices[channel].send !== null && chosen[channel] && REACHES[channel](reader),
  );
}
