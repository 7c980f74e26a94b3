import type { Database } from "bun:sqlite";
import { expect } from "bun:test";
import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { auditLedger } from "../../src/store/sqlite/audit.ts";
import { fillDigests } from "../../src/store/sqlite/fill-digests.ts";
import { createTestContext } from "../support/context.ts";
import { type Corruption, expectFound, withCopy } from "../support/corrupted.ts";
import { buildGoodPurchases } from "../support/good-purchases.ts";
import { encoded, openMarket } from "../support/market.ts";
import { onlyEmbedded } from "../support/only-embedded.ts";
import { createStage } from "../support/stage.ts";

const { afterAll, beforeAll, describe, test } = onlyEmbedded(import.meta.path);

/** A ledger with purchases that ended in every way, and one that was cut off in each phase; each corruption works on a copy. */
let folder: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "holdfast-audit-"));
  const market = openMarket();
  const ctx = createTestContext({ x402: market.x402 });
  const stage = await createStage(ctx, { mode: "sandbox", funds: "10000" });
  await buildGoodPurchases(stage, market);
  await ctx.store.close();
  cpSync(ctx.folder, folder, { recursive: true });
  rmSync(ctx.folder, { recursive: true });
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

test("purchases of every kind have nothing to report", () => {
  withCopy(folder, ({ readers }) => {
    const phases = readers.raw.query<{ phase: string }, []>("SELECT phase FROM purchases ORDER BY id").all();
    expect(phases.map(({ phase }) => phase)).toEqual([
      ...Array(7).fill("ended"),
      ...["quoting", "held", "signed", "answered", "answered"],
    ]);
    expect(auditLedger(readers)).toEqual([]);
  });
});

const at = (path: string) => `WHERE url = 'http://seller.example/${path}'`;
const set = (path: string, what: string) => `UPDATE purchases SET ${what} ${at(path)}`;
const warrantOf = (path: string) => `(SELECT warrant_id FROM purchases ${at(path)})`;

/** Another header than the one that was signed. */
function rewriteHeader(path: string, change: (payload: Payload) => unknown) {
  return (raw: Database): void => {
    const { header } = raw
      .query<{ header: string }, []>(`SELECT header FROM purchases ${at(path)}`)
      .get() as { header: string };
    const { name, value } = JSON.parse(header);
    const decoded = JSON.parse(Buffer.from(value, "base64").toString());
    const changed = { name, value: encoded({ ...decoded, payload: change(decoded.payload) }) };
    raw.query(`UPDATE purchases SET header = ? ${at(path)}`).run(JSON.stringify(changed));
  };
}
type Payload = { readonly authorization: object; readonly voucher: string };
const authorizing = (change: object) =>
  rewriteHeader("paid", (payload) => ({
    ...payload,
    authorization: { ...payload.authorization, ...change },
  }));

const TERMS: readonly Corruption[] = [
  [
    "another amount",
    set("voucher", "quoted_amount = 99"),
    /^purchase pur_\w+: its warrant's amount is 100, not 99$/,
  ],
  ["another asset", set("voucher", "quoted_asset = 'EUR'"), /: its warrant's asset is "USDC", not "EUR"$/],
  ["another payee", set("paid", "quoted_payee = 'x'"), /: its warrant's payee is "0x\w+", not "x"$/],
  ["another agent", set("paid", "agent_id = 'agt_x'"), /: its warrant's agent is "agt_\w+", not "agt_x"$/],
  ["another mode", set("voucher", "mode = 'live'"), /: its warrant's mode is "sandbox", not "live"$/],
  [
    "another organisation",
    set("voucher", "organisation_id = 'org_x'"),
    /: its warrant's organisation is "org_\w+", not "org_x"$/,
  ],
  ["a quote above the ceiling", set("paid", "max_amount = 99"), /: its quote 100 is above max_amount 99$/],
  [
    "a warrant that is not there",
    set("paid", "warrant_id = 'wrt_x'"),
    /: has a quote, and its warrant wrt_x is not/,
  ],
  [
    "a hold without a quote",
    set("held", "pays = NULL"),
    /: has no quote: warrant_id is "wrt_\w+", not null$/,
  ],
  ["a phase without a quote", set("quoting", "phase = 'held'"), /: is held without a quote$/],
  [
    "a warrant of two purchases",
    `DROP INDEX purchases_of_warrant; ${set("voucher", `warrant_id = ${warrantOf("voucher-silent")}`)}`,
    /^warrant wrt_\w+: is of 2 purchases$/,
  ],
  [
    "an authorization of two purchases",
    `DROP INDEX purchases_one_of_a_nonce; ${set("unpaid", `nonce = (SELECT nonce FROM purchases ${at("paid")})`)}`,
    /^nonce 0x\w{64}: is of 2 purchases$/,
  ],
];

const STATES: readonly Corruption[] = [
  [
    "a hold whose warrant is settled",
    set("paid", "phase = 'held'"),
    /: is held \(exact, paid\) with a warrant that is released$/,
  ],
  [
    "an end with a hold",
    set("held", "phase = 'ended', known = 'unpaid'"),
    /: is ended \(exact, unpaid\) with a warrant that is held$/,
  ],
  [
    "paid and refunded",
    set("unpaid", "known = 'paid'"),
    /: is ended \(exact, paid\) with a warrant that is refunded$/,
  ],
  [
    "unpaid and released",
    set("paid", "known = 'unpaid'"),
    /: is ended \(exact, unpaid\) with a warrant that is released$/,
  ],
  [
    "unpaid and waiting",
    set("unknown", "known = 'unpaid'"),
    /: is ended \(exact, unpaid\) with a warrant that is escalated$/,
  ],
  [
    "not known and released",
    set("paid", "known = 'unknown'"),
    /: is ended \(exact, unknown\) with a warrant that is released$/,
  ],
  ["nothing known at the end", set("paid", "known = NULL"), /: is ended \(exact, nothing known\)/],
  ["a voucher that moved money", set("voucher", "known = 'paid'"), /: is ended \(voucher, paid\) with/],
  [
    "known before the end",
    set("signed", "known = 'paid', known_by = 'chain'"),
    /: is signed: known is "paid", not null$/,
  ],
  ["paid by nobody's word", set("paid", "known_by = NULL"), /: its payment is paid, and known_by is null$/],
  [
    "a word on what is not known",
    set("unknown", "known_by = 'chain'"),
    /: its payment is unknown, and known_by is chain$/,
  ],
  [
    "an unknown payment that nobody asks about",
    set("unknown", "next_check_at = NULL"),
    /: next_check_at is null, and its payment is unknown$/,
  ],
  [
    "a known payment that is asked about",
    set("paid", "next_check_at = 1"),
    /: next_check_at is 1, and its payment is paid$/,
  ],
  [
    "what a chain said of a payment that no person attested",
    set("paid", "chain_said = 'paid'"),
    /: chain_said is paid, and known_by is chain$/,
  ],
  [
    "a chain that contradicts a person",
    set("unpaid", "known_by = 'person', chain_said = 'paid'"),
    /: a person said that its payment is unpaid, and its chain says paid$/,
  ],
  [
    "an acknowledged payment that no chain contradicts",
    set("unpaid", "acknowledged_at = 1"),
    /: is acknowledged, and its chain contradicts nobody$/,
  ],
  [
    "a person's word that is not compared with the chain",
    set("unpaid", "known_by = 'person'"),
    /: next_check_at is null, and its payment is unpaid$/,
  ],
  [
    "an unknown payment whose escalation does not say so",
    `UPDATE escalations SET reason_codes = '[]' WHERE warrant_id = ${warrantOf("unknown")}`,
    /: is unknown, and no open escalation of its warrant says payment_unknown$/,
  ],
  [
    "money that is gone whose escalation does not say so",
    `UPDATE escalations SET reason_codes = '["payment_unknown"]' WHERE warrant_id = ${warrantOf("paid-bad")}`,
    /: is paid, and no open escalation of its warrant says payment_irrevocable$/,
  ],
  [
    "a purchase under way whose key is free",
    "DELETE FROM idempotency_keys WHERE key = 'signed'",
    /: is signed, and its idempotency key is not in flight$/,
  ],
  [
    "a purchase under way whose key has an answer",
    "UPDATE idempotency_keys SET status = 200, body = '{}', holder = NULL WHERE key = 'quoting'",
    /: is quoting, and its idempotency key is not in flight$/,
  ],
  [
    "a purchase that has ended whose key is in flight",
    "UPDATE idempotency_keys SET status = NULL, body = NULL, content_hash = NULL, holder = 'pur_none' WHERE key = 'paid'",
    /^idempotency key "paid": is in flight, and pur_none is neither/,
  ],
];

const SIGNED: readonly Corruption[] = [
  ["no payer", set("paid", "payer = NULL"), /: is paid by exact, and its payer is null$/],
  ["no nonce", set("held", "nonce = NULL"), /: is paid by exact, and its nonce is null$/],
  ["no expiry", set("paid", "valid_before = NULL"), /: is paid by exact, and its valid_before is null$/],
  [
    "a voucher with a nonce",
    set("voucher", "nonce = '0x00'"),
    /: is paid by voucher, and its nonce is 0x00$/,
  ],
  ["another chain beside it", set("paid", "chain_id = 1"), /: chain_id is 1, not 84532$/],
  ["another token beside it", set("paid", "contract = '0x'"), /: contract is "0x", not "0x036cbd/],
  [
    "a main network in the sandbox",
    set("paid", "chain_id = 8453, pays = json_set(pays, '$.chainId', 8453)"),
    /: is sandbox, and paid on eip155:8453$/,
  ],
  ["signed without a header", set("signed", "header = NULL"), /: is signed without a header$/],
  ["sent without a header", set("paid", "header = NULL"), /: is ended without a header$/],
  [
    "a header before it is signed",
    set("held", `header = (SELECT header FROM purchases ${at("signed")})`),
    /: is held with a header$/,
  ],
  [
    "another nonce than the header's",
    set("paid", `nonce = '0x${"00".repeat(32)}'`),
    /: its header's nonce is "0x\w+", not "0x0+"$/,
  ],
  [
    "another expiry than the header's",
    set("paid", "valid_before = 1000"),
    /: its header's validBefore is "\d+", not "1"$/,
  ],
  ["a header of another payer", authorizing({ from: "0xA1" }), /: its header's from is "0xa1", not/],
  ["a header for another payee", authorizing({ to: "0xA1" }), /: its header's to is "0xa1", not/],
  ["a header of another amount", authorizing({ value: "101" }), /: its header's value is "101", not "100"$/],
  [
    "a header of the other version",
    set("paid", "pays = json_set(pays, '$.protocol', 2)"),
    /: its header's x402Version is 1, not 2$/,
  ],
  [
    "a header that cannot be read",
    set("paid", `header = '{"name":"X-PAYMENT","value":"e30"}'`),
    /: its header: cannot be read: /,
  ],
  [
    "another's voucher",
    set("voucher", `header = (SELECT header FROM purchases ${at("voucher-silent")})`),
    /: its voucher's jti is "wrt_\w+", not "wrt_\w+"$/,
  ],
  [
    "a voucher for another amount",
    rewriteHeader("voucher", ({ voucher }) => {
      const [head, body = "", signature] = voucher.split(".");
      const claims = JSON.parse(Buffer.from(body, "base64url").toString());
      const other = Buffer.from(JSON.stringify({ ...claims, amount: "1" })).toString("base64url");
      return { voucher: `${head}.${other}.${signature}` };
    }),
    /: its voucher's amount is "1", not "100"$/,
  ],
  [
    "goods that are missing",
    "DELETE FROM contents",
    /^purchase \w+: is \w+, and the content \w{64} of its answer is not stored$/,
  ],
  [
    "goods that nobody keeps",
    "INSERT INTO contents (hash, bytes) VALUES ('e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855', x'')",
    /^content e3b0c4\w+: no purchase and no capsule keeps it$/,
  ],
  [
    "goods that count too little",
    set("paid", "content_bytes = 1"),
    /: is ended: content_bytes is 1, not 4096$/,
  ],
  [
    "a sum of goods that is wrong",
    "UPDATE content_sums SET bytes = bytes + 1",
    /^content of org_\w+, \w+: \d+ bytes are counted as bought, and its purchases count \d+$/,
  ],
  [
    "goods that were changed",
    "UPDATE contents SET bytes = x'00'",
    /^content \w{64}: the SHA-256 of its bytes is/,
  ],
  [
    "goods that are gone before their key",
    "DELETE FROM contents",
    /^idempotency key "paid": the content \w{64} of its answer is not stored$/,
  ],
  [
    "goods that are gone before they were evaluated",
    set("answered", "response_hash = 'gone'"),
    /^purchase pur_\w+: is answered, and the content gone of its answer is not stored$/,
  ],
];

describe.each([
  ["a purchase's terms", TERMS],
  ["how far a purchase came", STATES],
  ["what was signed and delivered", SIGNED],
] as const)("what is wrong with %s is found", (_, corruptions) => {
  for (const corruption of corruptions) test(corruption[0], () => expectFound(folder, corruption));
});

/** The statements that give up the content of some purchases. */
const givingUp = (where: string): readonly string[] => [
  `UPDATE purchases SET content_bytes = 0 WHERE ${where}`,
  "DELETE FROM contents WHERE hash NOT IN (SELECT response_hash FROM purchases WHERE content_bytes > 0 AND response_hash IS NOT NULL) AND hash NOT IN (SELECT stored_hash FROM capsules WHERE stored_hash IS NOT NULL)",
  `UPDATE content_sums SET bytes = (
     SELECT coalesce(sum(content_bytes), 0) FROM purchases JOIN scopes USING (organisation_id, mode)
     WHERE position = scope AND (warrant_id IS NOT NULL) = bought)`,
];

test("goods that are forgotten with their keys are no fault", () => {
  withCopy(folder, ({ writer, readers }) => {
    writer.raw.run("DELETE FROM idempotency_keys WHERE content_hash IS NOT NULL");
    for (const statement of givingUp("phase = 'ended'")) writer.raw.run(statement);
    fillDigests(writer.raw, "purchases");
    expect(auditLedger(readers)).toEqual([]);
  });
});

test("nor is a body that nothing was paid for", () => {
  withCopy(folder, ({ writer, readers }) => {
    const changes = givingUp(`id = (SELECT id FROM purchases ${at("free")})`).map(
      (statement) => writer.raw.run(statement).changes,
    );
    expect(changes.slice(0, 2)).toEqual([1, 1]);
    fillDigests(writer.raw, "purchases");
    expect(auditLedger(readers)).toEqual([]);
  });
});
