import { readSecrets, type Secrets } from "../../src/config.ts";
import { newSigningKey } from "../../src/platform/tokens.ts";
import { newPushKey } from "../../src/platform/web-push.ts";
import { ENGINE } from "./engine.ts";
import { databaseOf, makeDatabase } from "./new-ledger.ts";
import { must } from "./organisations.ts";

/** The same for every ledger of this process. */
const SIGNING_KEY = newSigningKey();
const PUSH_KEY = newPushKey();
const keyOf = (byte: number): string => Buffer.alloc(32, byte).toString("base64");

/**
 * The environment by which an executable finds the ledger of a folder where it is in a database, which is made here unless it is there:
 * the address, and the keys that no folder has then. Empty where the ledger is in the folder.
 */
export function databaseSettings(folder: string): Readonly<Record<string, string>> {
  if (ENGINE === "embedded") return {};
  makeDatabase(folder);
  return {
    HOLDFAST_DATABASE: databaseOf(folder),
    HOLDFAST_SIGNING_KEY: SIGNING_KEY,
    HOLDFAST_PUSH_KEY: PUSH_KEY,
    HOLDFAST_MASTER_KEY: keyOf(1),
    HOLDFAST_WITNESS_KEY: keyOf(2),
  };
}

export const databaseSecrets = (folder: string): Secrets => must(readSecrets(databaseSettings(folder)));
