import type { Connection } from "./open.ts";

export function auditLedger({ raw }: Connection): readonly string[] {
  return raw.query("PRAGMA foreign_key_check").all().map(String);
}
