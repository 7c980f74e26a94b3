import { index, sqliteTable, text, uniqueIndex } from "drizzle-orm/sqlite-core";
import { int } from "../columns.ts";
import { organisationColumn, userColumn } from "./directory.ts";

/** The chats that people have linked, and the codes that link them. No money and no verdict follows from these rows. */

export const messagingAccounts = sqliteTable(
  "messaging_accounts",
  {
    userId: userColumn().primaryKey(),
    organisationId: organisationColumn(),
    chatId: text("chat_id").notNull(),
    username: text("username"),
    linkedAt: int("linked_at").notNull(),
  },
  (t) => [uniqueIndex("messaging_accounts_by_chat").on(t.chatId)],
);

export const messagingCodes = sqliteTable(
  "messaging_codes",
  {
    userId: userColumn().primaryKey(),
    organisationId: organisationColumn(),
    codeHash: text("code_hash").notNull(),
    expiresAt: int("expires_at").notNull(),
  },
  (t) => [
    uniqueIndex("messaging_codes_by_hash").on(t.codeHash),
    index("messaging_codes_by_end").on(t.expiresAt),
  ],
);
