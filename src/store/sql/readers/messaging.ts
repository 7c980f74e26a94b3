import type { Tables } from "../database.ts";
import { finding, keyed } from "../find-by-key.ts";
import { messagingLookUps } from "../messaging-rows.ts";
import { messagingAccounts, messagingCodes } from "../tables/messaging.ts";
import type { SqlReader } from "./sql-reader.ts";

export function createMessagingReader(tables: Tables): SqlReader["messaging"] {
  const { messagingAccount, messagingCode } = messagingLookUps(tables);
  return {
    accountOf: messagingAccount,
    accountOfChat: finding(() =>
      tables.select().from(messagingAccounts).where(keyed(messagingAccounts.chatId)).prepare(),
    ),
    codeOf: messagingCode,
    codeByHash: finding(() =>
      tables.select().from(messagingCodes).where(keyed(messagingCodes.codeHash)).prepare(),
    ),
  };
}
