import { eq, sql } from "drizzle-orm";
import type { Tables } from "./database.ts";
import { finding, keyed } from "./find-by-key.ts";
import { excludedOf, placeholdersOf } from "./rows.ts";
import { messagingAccounts, messagingCodes } from "./tables/messaging.ts";

/** How the chats of people and their codes are written, found and deleted. */

const { placeholder } = sql;

export function messagingRows(tables: Tables) {
  return {
    // An account is made and deleted, and never changed.
    messagingAccount: () => tables.insert(messagingAccounts).values(placeholdersOf(messagingAccounts)),
    messagingCode: () =>
      tables
        .insert(messagingCodes)
        .values(placeholdersOf(messagingCodes))
        .onConflictDoUpdate({
          target: messagingCodes.userId,
          set: excludedOf(messagingCodes, "codeHash", "expiresAt"),
        }),
  };
}

export const messagingDeletions = (tables: Tables) => ({
  messagingAccount: () =>
    tables.delete(messagingAccounts).where(eq(messagingAccounts.userId, placeholder("userId"))),
  messagingCode: () => tables.delete(messagingCodes).where(eq(messagingCodes.userId, placeholder("userId"))),
});

export function messagingLookUps(tables: Tables) {
  return {
    messagingAccount: finding(() =>
      tables.select().from(messagingAccounts).where(keyed(messagingAccounts.userId)).prepare(),
    ),
    messagingCode: finding(() =>
      tables.select().from(messagingCodes).where(keyed(messagingCodes.userId)).prepare(),
    ),
  };
}

export const ACCOUNT_OF_CHAT_SQL = "SELECT user_id AS key FROM messaging_accounts WHERE chat_id = ?";
