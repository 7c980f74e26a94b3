import { type AuthSession, signInIdOf } from "../core/auth-session.ts";
import type { MessagingAccount, MessagingCode } from "../core/messaging.ts";
import type { PasswordReset } from "../core/password-reset.ts";
import type { Deletion, Put } from "../store/change.ts";
import type { Entry } from "./audited.ts";

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

/** The entry of a change, and where it unlinked a chat one of that too. */
export const withUnlinked = (
  entry: Entry,
  { messagingAccount: account }: Chat,
): readonly [Entry] | readonly [Entry, Entry] => (account ? [entry, unlinkedEntry(account)] : [entry]);

export const unlinkedEntry = (account: MessagingAccount): Entry => ({
  action: "messaging.unlinked",
  subject: account.userId,
  before: namedChat(account),
  after: null,
});
