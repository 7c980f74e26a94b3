import { hashSecret } from "../../core/api-key.ts";
import type { Client } from "../../core/client.ts";
import { isRefusal, type Refusal, refuse } from "../../core/errors.ts";
import { CODE_MS, type MessagingAccount, type MessagingCode, newCode } from "../../core/messaging.ts";
import type { Organisation } from "../../core/organisation.ts";
import { ACCESS, type PersonCaller } from "../../core/roles.ts";
import type { User } from "../../core/user.ts";
import type { Decision } from "../../store/store.ts";
import { type Audited, executeAudited, type Recording } from "../audited.ts";
import { confirmPassword } from "../auth/confirm-password.ts";
import { personOf } from "../auth/person.ts";
import { callerNow, credentialOf } from "../caller-now.ts";
import type { Context } from "../context.ts";
import { chatNeeds, endChat, namedChat, unlinkedEntry } from "../end-credentials.ts";

/** How a person links a chat with the bot, and unlinks it. */

/** A person's chat; null where none is linked. */
export const readOwnChat = ({ store }: Context, { userId }: PersonCaller): Promise<MessagingAccount | null> =>
  store.read(({ messaging }) => messaging.accountOf(userId));

/** A code that was made now: nobody sees it again. */
export type NewCode = { readonly code: string; readonly expiresAt: number };

/**
 * Makes the person's one-time code, in place of an earlier one. Whoever sends it from a chat hears of the person's escalations
 * and may decide some, so the password is asked for again. Refused with `already_exists` where a chat is linked.
 */
export async function makeLinkCode(
  ctx: Context,
  caller: PersonCaller,
  password: string,
  client: Client,
): Promise<NewCode | Refusal> {
  const user = await ctx.store.read((reader) => personOf(reader, caller, ACCESS.keepOwnSignIn));
  if (isRefusal(user)) return user;
  const wrong = await confirmPassword(ctx, user, password, client);
  if (wrong) return wrong;
  const { userId, organisationId } = caller;
  const code = newCode(ctx.randomByte);
  return ctx.store.execute({
    scope: caller,
    needs: { ...credentialOf(caller), ...chatNeeds(userId) },
    decide({ messagingAccount, messagingCode: before, ...snapshot }, now): Decision<NewCode> {
      const present = callerNow(caller, ACCESS.keepOwnSignIn, snapshot, now);
      if (isRefusal(present)) return { answer: present };
      if (messagingAccount)
        return { answer: refuse("already_exists", "A chat is linked already. Unlink it first.") };
      const expiresAt = now + CODE_MS;
      const row: MessagingCode = { userId, organisationId, codeHash: hashSecret(code), expiresAt };
      return { answer: { code, expiresAt }, change: { put: [{ kind: "messagingCode", before, row }] } };
    },
  });
}

/** Unlinks the caller's own chat. Answers false where there is none. */
export async function unlinkOwnChat(ctx: Context, caller: PersonCaller): Promise<boolean | Refusal> {
  const { userId } = caller;
  return executeAudited(
    ctx,
    { kind: "user", id: userId },
    {
      scope: caller,
      needs: { ...credentialOf(caller), ...chatNeeds(userId) },
      decide(snapshot, now): Audited<boolean> {
        const present = callerNow(caller, ACCESS.keepOwnSignIn, snapshot, now);
        return isRefusal(present)
          ? { answer: present }
          : unlinked(snapshot, snapshot.messagingAccount?.chatId);
      },
    },
  );
}

/** Unlinks a chat, as its person asked in the chat, or by blocking the bot. Answers false where it is not theirs any more. */
export async function unlinkChat(
  ctx: Recording,
  { userId, organisationId, chatId }: MessagingAccount,
): Promise<boolean | Refusal> {
  return executeAudited(
    ctx,
    { kind: "user", id: userId },
    {
      scope: { organisationId, mode: "live" },
      needs: chatNeeds(userId),
      decide: (snapshot): Audited<boolean> => unlinked(snapshot, chatId),
    },
  );
}

function unlinked(
  chat: {
    readonly messagingAccount: MessagingAccount | null;
    readonly messagingCode: MessagingCode | null;
  },
  chatId: string | undefined,
): Audited<boolean> {
  const { messagingAccount: account } = chat;
  if (!account || account.chatId !== chatId) return { answer: false };
  return { answer: true, put: [], deleted: endChat(chat), entries: [unlinkedEntry(account)] };
}

/** Who a chat is linked to. */
export type Linked = { readonly user: User; readonly organisation: Organisation };

/**
 * Links a chat to the person whose code was sent from it. Refused with `not_authenticated` where the code is unknown, used or
 * out of date, and with `already_exists` where the chat or the person is linked already.
 */
export async function linkChat(
  ctx: Context,
  { chatId, username }: Pick<MessagingAccount, "chatId" | "username">,
  code: string,
): Promise<Linked | Refusal> {
  const codeHash = hashSecret(code);
  const found = await ctx.store.read(({ messaging }) => messaging.codeByHash(codeHash));
  if (!found) return uselessCode();
  const { userId, organisationId } = found;
  return executeAudited(
    ctx,
    { kind: "user", id: userId },
    {
      scope: { organisationId, mode: "live" },
      needs: { user: userId, messagingAccountOfChat: chatId, ...chatNeeds(userId) },
      decide(snapshot, now): Audited<Linked> {
        const { user, organisation, messagingCode, messagingAccount, messagingAccountOfChat } = snapshot;
        if (!user || messagingCode?.codeHash !== codeHash || messagingCode.expiresAt <= now)
          return { answer: uselessCode() };
        if (messagingAccount || messagingAccountOfChat)
          return {
            answer: refuse(
              "already_exists",
              messagingAccountOfChat
                ? "This chat is linked already. Send /stop first."
                : "You have linked another chat already. Unlink that one first.",
            ),
          };
        const row: MessagingAccount = { userId, organisationId, chatId, username, linkedAt: now };
        return {
          answer: { user, organisation },
          put: [{ kind: "messagingAccount", before: null, row }],
          deleted: endChat(snapshot),
          entries: [{ action: "messaging.linked", subject: userId, before: null, after: namedChat(row) }],
        };
      },
    },
  );
}

const uselessCode = (): Refusal =>
  refuse(
    "not_authenticated",
    "This code is unknown, used or out of date. Make a new one in the console, under Notices.",
  );
