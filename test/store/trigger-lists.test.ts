import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { getTableColumns } from "drizzle-orm";
import { POSTING_KINDS } from "../../src/core/postings.ts";
import { MODES } from "../../src/core/roles.ts";
import { ENDED_DELIVERY_STATUSES } from "../../src/core/webhook.ts";
import { KNOWN, PHASES } from "../../src/core/x402/purchase.ts";
import { CHAIN_RAIL_OF_MODE, RAIL_OF_MODE, trace } from "../../src/store/sql/tables/ledger.ts";
import { openLedger } from "../../src/store/sqlite/open.ts";

/** A trigger is text, and repeats lists that the code has. They are compared here, in a ledger that has every migration. */

let folder: string;
let triggers: ReadonlyMap<string, string>;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "holdfast-triggers-"));
  const { raw } = openLedger(folder, "0.1.0", () => ({ id: "ins_none", createdAt: 0 }));
  const found = raw
    .query<{ name: string; sql: string }, []>("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'")
    .all();
  raw.close();
  triggers = new Map(found.map(({ name, sql }) => [name, sql]));
});
afterAll(() => rmSync(folder, { recursive: true }));

/** What the first group of a pattern finds in a trigger, each once, in the order of the alphabet. */
function listed(trigger: string, pattern: RegExp): string[] {
  const sql = triggers.get(trigger);
  if (sql === undefined) throw new Error(`there is no trigger ${trigger}`);
  return [...new Set([...sql.matchAll(pattern)].map(([, name = ""]) => name))].sort();
}

const sorted = (list: readonly string[]): string[] => [...list].sort();

/** The texts of an IN list. */
const textsIn = (list: string | undefined): string[] =>
  [...(list ?? "").matchAll(/'(\w+)'/g)].map(([, text = ""]) => text).sort();

test("of an entry of the trace everything but its leaf stays as it is", () => {
  const columns = Object.values(getTableColumns(trace)).map(({ name }) => name);
  const kept = sorted(columns.filter((name) => name !== "leaf_index"));
  const [, named = ""] =
    /UPDATE OF ([^)]+?)\s*ON `trace`/.exec(triggers.get("trace_is_not_changed") ?? "") ?? [];
  expect([...named.matchAll(/`(\w+)`/g)].map(([, name = ""]) => name).sort()).toEqual(
    sorted([...kept, "rowid", "oid", "_rowid_"]),
  );
  expect(listed("trace_is_not_changed", /NEW\.`(\w+)` IS NOT\s+OLD\.`\1`/g)).toEqual(kept);
});

test("the kinds of postings are those of the code", () => {
  const kind = /`kind` = '(\w+)'/g;
  expect(listed("postings_of_a_known_kind", kind)).toEqual(sorted(POSTING_KINDS));
  const ofEach = [
    ...["postings_hold_an_amount", "postings_settle_a_warrant", "postings_of_a_known_deposit"],
    ...["postings_of_a_known_correction", "postings_of_a_known_payout"],
  ];
  expect(ofEach.flatMap((trigger) => listed(trigger, kind)).sort()).toEqual(sorted(POSTING_KINDS));
});

test("an organisation gets a scope of each mode", () => {
  expect(listed("scopes_of_an_organisation", /NEW\.`id`, '(\w+)'/g)).toEqual(sorted(MODES));
});

test("the rail of a mode is that of the code", () => {
  for (const trigger of ["postings_on_a_rail_of_their_mode", "payouts_on_a_rail_of_their_mode"]) {
    const endings = listed(trigger, /`mode` \|\| '(\w+)'/g);
    for (const mode of MODES)
      expect<string[]>(sorted([CHAIN_RAIL_OF_MODE[mode], RAIL_OF_MODE[mode]])).toEqual(
        sorted(endings.map((ending) => `${mode}${ending}`)),
      );
  }
});

test("the phases of a purchase are those of the code, in their order", () => {
  expect(listed("purchases_do_not_go_back", /instr\('([^']*)'/g)).toEqual([`,${PHASES.join(",")},`]);
});

test("what is known of a payment and stays known is all but unknown", () => {
  const [known, ...others] = listed("purchases_do_not_go_back", /OLD\.`known` IN \(([^)]*)\)/g);
  expect(others).toEqual([]);
  expect(textsIn(known)).toEqual(sorted(KNOWN.filter((value) => value !== "unknown")));
});

test("the statuses of a delivery that ended are those of the code", () => {
  const [statuses, ...others] = listed("webhook_deliveries_end_once", /OLD\.`status` IN \(([^)]*)\)/g);
  expect(others).toEqual([]);
  expect(textsIn(statuses)).toEqual(sorted(ENDED_DELIVERY_STATUSES));
});
