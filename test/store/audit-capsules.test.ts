import { expect } from "bun:test";
import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { auditLedger } from "../../src/store/sqlite/audit.ts";
import { createTestContext } from "../support/context.ts";
import { type Corruption, expectFound, withCopy } from "../support/corrupted.ts";
import { onlyEmbedded } from "../support/only-embedded.ts";
import { createCaller, createStage, NONE_PASS, open, SCRIPTED, verify, warrantIn } from "../support/stage.ts";

const { afterAll, beforeAll, test } = onlyEmbedded(import.meta.path);

/** A ledger with two capsules; each corruption works on a copy. */
let folder: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "holdfast-audit-"));
  const ctx = createTestContext(SCRIPTED);
  const stage = await createStage(ctx);
  const agent = await createCaller(stage);
  await verify(stage, agent, warrantIn(await open(stage, agent)).id);
  ctx.clock.now += 1_000;
  await verify(stage, agent, warrantIn(await open(stage, agent)).id, NONE_PASS);
  await ctx.store.close();
  cpSync(ctx.folder, folder, { recursive: true });
  rmSync(ctx.folder, { recursive: true });
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test("capsules have nothing to report, nor has a check whose capsule is gone", () => {
  withCopy(folder, ({ writer, readers }) => {
    expect(auditLedger(readers)).toEqual([]);
    writer.raw.run("DELETE FROM capsules");
    writer.raw.run("DELETE FROM capsule_parts");
    expect(auditLedger(readers)).toEqual([]);
  });
});

const set = (what: string): string => `UPDATE capsules SET ${what} WHERE position = 2`;
const fact = (path: string, value: string): string => set(`facts = json_set(facts, '$.${path}', ${value})`);

const CORRUPTIONS: readonly Corruption[] = [
  ["another fact", fact("status", "404"), /^capsule chk_\w+: the SHA-256 of its facts is "\w+", not "\w+"$/],
  ["another time", fact("evaluated_at", "'2020-01-01T00:00:00.000Z'"), /: its facts' evaluated_at is "2020/],
  ["facts in another form", set("facts = ' ' || facts"), /: its facts are not canonical JSON$/],
  ["facts that are not JSON", set("facts = 'x'"), /^capsule chk_\w+: cannot be read: /],
  [
    "another id",
    set("id = 'chk_other'"),
    /^capsule chk_other: its facts' check_id is "chk_\w+", not "chk_other"$/,
  ],
  ["another organisation", set("organisation_id = 'org_x'"), /: organisation_id is "org_x", not "org_\w+"$/],
  ["another mode", set("mode = 'sandbox'"), /^capsule chk_\w+: mode is "sandbox", not "live"$/],
  ["another body", set("stored_hash = 'x'"), /^capsule chk_\w+: its body x is missing$/],
  ["no body", set("stored_hash = NULL"), /: its facts' evidence_hash is "\w{64}", not "\w{64}"$/],
  [
    "the body of another",
    set("stored_hash = (SELECT stored_hash FROM capsules WHERE position = 1)"),
    /: its facts' evidence_hash is "\w{64}", not "\w{64}"$/,
  ],
  ["a body that is said to be a purchase's", set("parts = 0"), /: its body \w{64} is missing$/],
  ["more parts", set("parts = 2"), /: its body \w{64} is missing$/],
  ["another count", set("bytes = 9999"), /^capsule chk_\w+: bytes is 9999, not 4096$/],
  ["another sum", set("bytes_until = 9999"), /: bytes_until is 9999, not 8192$/],
  ["an earlier time", set("created_at = 1"), /: created_at is before that of the capsule before it$/],
  [
    "bytes that were changed",
    "UPDATE capsule_parts SET bytes = (SELECT max(bytes) FROM capsule_parts)",
    /^capsule chk_\w+: the SHA-256 of its stored body is "\w{64}", not "\w{64}"$/,
  ],
  [
    "bytes that are not compressed",
    "UPDATE capsule_parts SET bytes = x'00'",
    /^capsule chk_\w+: the SHA-256 of its stored body is "\w{64}", not "\w{64}"$/,
  ],
  ["bytes that are missing", "DELETE FROM capsule_parts", /^capsule chk_\w+: its body \w{64} is missing$/],
  [
    "a part that nobody keeps",
    "INSERT INTO capsule_parts VALUES ('x', 0, x'00')",
    /^part 0 of the body x: no capsule keeps it$/,
  ],
  ["a check's capsule hash", "UPDATE checks SET capsule_hash = zeroblob(32)", /^warrant wrt_\w+: .*entry/],
  ["a check's key", "UPDATE checks SET signed_by = 'x'", /^warrant wrt_\w+: .*entry/],
  ["a check's version", "UPDATE checks SET evaluator_version = 9", /^warrant wrt_\w+: .*entry/],
];

for (const corruption of CORRUPTIONS)
  test(`${corruption[0]} is found`, () => expectFound(folder, corruption));
