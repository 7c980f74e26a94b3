import { existsSync } from "node:fs";
import { join } from "node:path";

/** Where a data folder has its ledger. Apart from open.ts, so that the child that copies the log loads no drizzle. */
export const LEDGER_FILE = "holdfast.db";
export const ledgerFile = (dataFolder: string): string => join(dataFolder, LEDGER_FILE);

export const hasLedger = (dataFolder: string): boolean => existsSync(ledgerFile(dataFolder));
