import { type AuthSession, signInIdOf } from "../core/auth-session.ts";
import type { MessagingAccount, MessagingCode } from "../core/messaging.ts";
import type { PasswordReset } from "../core/password-reset.ts";
import type { PushSubscription } from "../core/push.ts";
import { isoTime } from "../core/time.ts";
import type { Deletion, Put } from "../store/change.ts";
import type { Entries, Entry } from "./audited.ts";

/** Ends these sign-ins now. A sign-in that has expired stays as it is. */
export const endSignIns = (sessions: readonly AuthSession[], now: number): readonly Put[] =>
  sessions
    .filter(({ expiresAt }) => expiresAt > now)
    .map((before) => ({ kind: "authSession", before, row: { ...before, expiresAt: now } }));

const NAMED_MAX = 100;

/** What the audit log shows of sign-ins that end together: the ids of those that count now. */
export const namedSignIns = (sessions: readonly AuthSession[], now: number) => ({
  sign_ins: sessions
    .filter(({ expiresAt }) => expiresAt > now)
    .slice(0, NAMED_MAX)
    .map(signInIdOf),
});

/** Makes these unused reset links void now. A link that has expired stays as it is. */
export const voidPasswordResets = (resets: readonly PasswordReset[], now: number): readonly Put[] =>
  resets
    .filter(({ expiresAt }) => expiresAt > now)
    .map((before) => ({ kind: "passwordReset", before, row: { ...before, expiresAt: now } }));

/** The needs that load what a person's chat hangs by. */
export const chatNeeds = (userId: string) => ({ messagingAccount: userId, messagingCode: userId });

type Chat = {
  readonly messagingAccount: MessagingAccount | null;
  readonly messagingCode: MessagingCode | null;
};

/** Unlinks a person's chat, and makes their code void. */
export const endChat = ({ messagingAccount, messagingCode }: Chat): readonly Deletion[] => [
  ...(messagingAccount ? [{ kind: "messagingAccount", row: messagingAccount } as const] : []),
  ...(messagingCode ? [{ kind: "messagingCode", row: messagingCode } as const] : []),
];

/** What the audit log shows of a chat. */
export const namedChat = ({ chatId, username }: MessagingAccount) => ({ chat_id: chatId, username });

export const unlinkedEntry = (account: MessagingAccount): Entry => ({
  action: "messaging.unlinked",
  subject: account.userId,
  before: namedChat(account),
  after: null,
});

/** What others may see of a device: neither its endpoint nor a key. */
const namedDevice = ({ id, name, endpoint, createdAt }: PushSubscription) => ({
  id,
  name,
  push_service: new URL(endpoint).origin,
  created_at: isoTime(createdAt),
});

/** The entry of a change of the devices on which a person is notified. It has those alone that went or came. */
export const devicesEntry = (
  userId: string,
  gone: readonly PushSubscription[],
  added: readonly PushSubscription[],
): Entry => ({
  action: "push_devices.changed",
  subject: userId,
  before: { devices: gone.map(namedDevice) },
  after: { devices: added.map(namedDevice) },
});

/** The needs that load by what a person is reached, beside mail. */
export const contactNeeds = (userId: string) => ({ ...chatNeeds(userId), pushSubscriptions: userId });

type Contacts = Chat & { readonly pushSubscriptions: readonly PushSubscription[] };

/** Unlinks a person's chat, and forgets their devices. */
export const endContacts = ({ pushSubscriptions, ...chat }: Contacts): readonly Deletion[] => [
  ...endChat(chat),
  ...pushSubscriptions.map((row) => ({ kind: "pushSubscription", row }) as const),
];

/** The entry of a change that ends a person's contacts, with those of the contacts that there were. */
export function withContacts(
  entry: Entry,
  { messagingAccount, pushSubscriptions: devices }: Contacts,
): Entries {
  const [device] = devices;
  const chat = messagingAccount && unlinkedEntry(messagingAccount);
  const forgotten = device ? devicesEntry(device.userId, devices, []) : null;
  if (chat && forgotten) return [entry, chat, forgotten];
  const one = chat ?? forgotten;
  return one ? [entry, one] : [entry];
}
