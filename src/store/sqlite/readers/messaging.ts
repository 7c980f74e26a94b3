import { finding, keyed } from "../find-by-key.ts";
import { messagingLookUps } from "../messaging-rows.ts";
import type { Tables } from "../open.ts";
import { messagingAccounts, messagingCodes } from "../tables/messaging.ts";
import type { SqliteReader } from "./sqlite-reader.ts";

export function createMessagingReader(tables: Tables): SqliteReader["messaging"] {
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
