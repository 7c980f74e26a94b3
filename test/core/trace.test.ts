import { describe, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import fc from "fast-check";
import { canonicalJson } from "../../src/core/canonical.ts";
import { type Check, checkHashOf } from "../../src/core/check.ts";
import { isRefusal } from "../../src/core/errors.ts";
import { SYSTEM } from "../../src/core/roles.ts";
import { entriesOf, entryHashOf, type TraceDetails, type TraceEntry, traceOf } from "../../src/core/trace.ts";
import {
  decide,
  isLegalMove,
  type Mover,
  openingOf,
  STATES,
  type Transition,
  type Warrant,
} from "../../src/core/warrant.ts";

const NOW = Date.UTC(2030, 0, 15, 12);
const hex = (text: string): string => createHash("sha256").update(text).digest("hex");

const OPENED: Warrant = {
  id: "wrt_01ARZ3NDEKTSV4RRFFQ69G5FAV",
  organisationId: "org_1",
  mode: "sandbox",
  state: "held",
  version: 1,
  amount: 8_400_000n,
  asset: "USDC",
  releasedBps: null,
  payee: "seller",
  spec: { clauses: [{ kind: "json.schema", schema: "invoice" }] },
  specHash: hex("spec"),
  agentId: "agt_1",
  openedBy: { kind: "agent", id: "agt_1" },
  sessionId: "ses_1",
  verifierId: "vrf_1",
  policyId: "pol_1",
  policyVersion: 2,
  rulesHash: hex("rules"),
  traceHead: null,
  deadline: NOW + 60_000,
  openedAt: NOW,
  verifyingSince: null,
  graceUntil: null,
  settledAt: null,
};
const AGENT: TraceDetails = { actor: { kind: "agent", id: "key_1" }, eventId: "evt_1", recordedAt: NOW };
const CHECK: Check = {
  id: "chk_1",
  warrantId: OPENED.id,
  sourceUrl: "https://example.com/deliverable",
  httpStatus: 200,
  bytes: 12,
  durationMs: 3,
  score: 5_000,
  passed: false,
  reasonCodes: ["data_stale"],
  evidenceHash: hex("evidence"),
  details: [],
  outcome: "partial_release",
  bandLabel: null,
  evaluatedAt: NOW,
  evaluatorVersion: 1,
  signedBy: null,
  capsuleHash: "c".repeat(64),
};

/** The fields of every payload (docs/security, "Trace"), those at the open, and those after a check. */
const ALWAYS = [
  ...["warrant_id", "mode", "from", "to", "version", "actor", "recorded_at", "amount", "asset", "payee"],
  ...["released_bps", "spec_hash", "agent_id", "policy_id", "policy_version", "rules_hash"],
];
const AT_OPEN = ["schema_hashes"];
const AFTER_CHECK = ["check_id", "score", "reason_codes", "evidence_hash", "check_hash"];
const fieldsOf = (entry: TraceEntry): string[] => Object.keys(JSON.parse(entry.payload));

const next = (warrant: Warrant, to: Warrant["state"], by: Mover, releasedBps?: number): Transition => {
  const transition = decide(warrant, releasedBps === undefined ? { to, by } : { to, by, releasedBps }, {
    now: NOW + 1_500,
    recordedAt: NOW,
  });
  if (isRefusal(transition)) throw new Error(transition.message);
  return transition;
};
const VERIFYING = next(OPENED, "verifying", "caller").warrant;

describe("the payload", () => {
  test("of an opening", () => {
    const entry = traceOf(openingOf(OPENED), { ...AGENT, schemaHashes: { invoice: hex("schema") } });
    expect(fieldsOf(entry)).toEqual([...ALWAYS, ...AT_OPEN].toSorted());
    expect(JSON.parse(entry.payload)).toEqual({
      warrant_id: OPENED.id,
      mode: "sandbox",
      from: null,
      to: "held",
      version: 1,
      actor: { kind: "agent", id: "key_1" },
      recorded_at: "2030-01-15T12:00:00.000Z",
      amount: "8400000",
      asset: "USDC",
      payee: "seller",
      released_bps: null,
      spec_hash: OPENED.specHash,
      schema_hashes: { invoice: hex("schema") },
      agent_id: "agt_1",
      policy_id: "pol_1",
      policy_version: 2,
      rules_hash: OPENED.rulesHash,
    });
  });

  test("of a transition without a check", () => {
    const entry = traceOf(next(OPENED, "verifying", "caller"), AGENT);
    expect(fieldsOf(entry)).toEqual(ALWAYS.toSorted());
  });

  test("of a policy's outcome: the full amount, the share, the check and the system", () => {
    const transition = next(VERIFYING, "partially_released", "system", 5_000);
    const entry = traceOf(transition, {
      actor: SYSTEM,
      eventId: "evt_2",
      recordedAt: NOW + 1_500,
      check: CHECK,
    });
    expect(fieldsOf(entry)).toEqual([...ALWAYS, ...AFTER_CHECK].toSorted());
    expect(JSON.parse(entry.payload)).toMatchObject({
      check_id: "chk_1",
      score: 5_000,
      reason_codes: ["data_stale"],
      evidence_hash: hex("evidence"),
      check_hash: checkHashOf(CHECK),
      from: "verifying",
      to: "partially_released",
      version: 3,
      actor: { kind: "system", id: null },
      amount: "8400000",
      released_bps: 5_000,
      recorded_at: "2030-01-15T12:00:01.500Z",
    });
  });

  test("of a warrant without agent and policy has null for them, and the hash of the rules", () => {
    const alone = { ...OPENED, agentId: null, policyId: null, policyVersion: null };
    expect(JSON.parse(traceOf(openingOf(alone), AGENT).payload)).toMatchObject({
      agent_id: null,
      policy_id: null,
      policy_version: null,
      rules_hash: OPENED.rulesHash,
    });
  });

  test("is canonical text, in full", () => {
    const entry = traceOf(openingOf(OPENED), { ...AGENT, schemaHashes: {} });
    expect(entry.payload).toBe(
      `{"actor":{"id":"key_1","kind":"agent"},"agent_id":"agt_1","amount":"8400000","asset":"USDC","from":null,` +
        `"mode":"sandbox","payee":"seller","policy_id":"pol_1","policy_version":2,` +
        `"recorded_at":"2030-01-15T12:00:00.000Z","released_bps":null,"rules_hash":"${OPENED.rulesHash}",` +
        `"schema_hashes":{},"spec_hash":"${OPENED.specHash}","to":"held","version":1,"warrant_id":"${OPENED.id}"}`,
    );
  });
});

describe("the text of the payload", () => {
  const text = fc.string({ unit: "grapheme", minLength: 1 });
  const hash = text.map(hex);

  test("is canonical JSON, whatever it contains", () => {
    fc.assert(
      fc.property(
        text,
        text,
        fc.dictionary(text, hash),
        fc.boolean(),
        (payee, asset, schemaHashes, isChecked) => {
          const opening = traceOf(openingOf({ ...OPENED, payee, asset }), { ...AGENT, schemaHashes });
          const outcome = traceOf(next({ ...VERIFYING, payee, asset }, "refunded", "system"), {
            ...AGENT,
            ...(isChecked && { check: { ...CHECK, id: payee } }),
          });
          for (const { payload } of [opening, outcome])
            expect(payload).toBe(canonicalJson(JSON.parse(payload)));
        },
      ),
    );
  });

  test("is written again from what is kept of the entries, as the warrant is at the end", () => {
    const kept = ({
      payload: _,
      payloadHash: __,
      rulesHash: ___,
      previous: ____,
      event: _____,
      ...step
    }: TraceEntry) => step;
    let transition = openingOf(OPENED);
    const written: TraceEntry[] = [];
    const write = (details: Partial<TraceDetails>): Warrant => {
      const entry = traceOf(transition, { ...AGENT, recordedAt: NOW + written.length, ...details });
      written.push(entry);
      return { ...transition.warrant, traceHead: entry.entryHash };
    };
    let warrant = write({ schemaHashes: { invoice: hex("a"), "2": hex("b"), "10": hex("c") } });
    transition = next(warrant, "verifying", "caller");
    warrant = write({});
    transition = next(warrant, "escalated", "system");
    warrant = write({ actor: SYSTEM, check: CHECK });
    transition = next(warrant, "partially_released", "operator", 5_000);
    warrant = write({ actor: { kind: "user", id: "usr_1" } });
    expect(entriesOf(warrant, written.map(kept), [CHECK])).toEqual(written);
    expect(() => entriesOf(warrant, written.map(kept), [])).toThrow("there is no check chk_1");
    const unknown = written.map((entry) => ({ ...kept(entry), encoding: 9 }));
    expect(() => entriesOf(warrant, unknown, [CHECK])).toThrow("encoding 9, which is unknown");
  });
});

describe("the hashes", () => {
  test("of an entry are SHA-256 of canonical JSON, recomputed by hand", () => {
    const link = { warrantId: "wrt_1", sequence: 0, previous: null, payloadHash: hex("payload") };
    expect(entryHashOf(link)).toBe(
      hex(`{"payload_hash":"${hex("payload")}","previous":null,"sequence":0,"warrant_id":"wrt_1"}`),
    );
    const later = { ...link, sequence: 12, previous: hex("previous") };
    expect(entryHashOf(later)).toBe(
      hex(
        `{"payload_hash":"${hex("payload")}","previous":"${hex("previous")}","sequence":12,"warrant_id":"wrt_1"}`,
      ),
    );
  });

  test("of an entry change with each of its parts", () => {
    const link = { warrantId: "wrt_1", sequence: 1, previous: hex("a"), payloadHash: hex("b") };
    const others = [
      { warrantId: "wrt_2" },
      { sequence: 2 },
      { previous: null },
      { previous: hex("c") },
      { payloadHash: hex("c") },
    ];
    const hashes = [link, ...others.map((other) => ({ ...link, ...other }))].map(entryHashOf);
    expect(new Set(hashes).size).toBe(hashes.length);
  });

  test("chain the entries of any walk, and count from 0", () => {
    const movers = ["caller", "operator", "second", "system"] as const;
    fc.assert(
      fc.property(fc.array(fc.nat(), { minLength: 1, maxLength: 8 }), (choices) => {
        let transition = openingOf(OPENED);
        let previous: string | null = null;
        for (const [sequence, choice] of choices.entries()) {
          const entry = traceOf(transition, AGENT);
          expect(entry).toMatchObject({
            warrantId: OPENED.id,
            sequence,
            previous,
            from: transition.from,
            to: transition.warrant.state,
            recordedAt: NOW,
            payloadHash: hex(entry.payload),
            rulesHash: OPENED.rulesHash,
          });
          const { warrantId, payloadHash } = entry;
          expect(entry.entryHash).toBe(
            hex(
              `{"payload_hash":"${payloadHash}","previous":${JSON.stringify(previous)},"sequence":${sequence},"warrant_id":"${warrantId}"}`,
            ),
          );
          previous = entry.entryHash;
          const warrant: Warrant = { ...transition.warrant, traceHead: entry.entryHash };
          const open = STATES.flatMap((to) =>
            movers.filter((by) => isLegalMove(warrant.state, to, by)).map((by) => ({ to, by })),
          );
          const move = open[choice % open.length];
          if (!move) return;
          transition = next(warrant, move.to, move.by, move.to === "partially_released" ? 1 : undefined);
        }
      }),
    );
  });
});

describe("the entry", () => {
  test("says who did it", () => {
    expect(traceOf(openingOf(OPENED), AGENT).actor).toEqual({ kind: "agent", id: "key_1" });
  });

  test("carries the event that it fires, under the id that it was given", () => {
    expect(traceOf(openingOf(OPENED), AGENT).event).toEqual({ id: "evt_1", type: "warrant.opened" });
    const expired = traceOf(next(OPENED, "expired", "system"), {
      actor: SYSTEM,
      eventId: "evt_9",
      recordedAt: NOW,
    });
    expect(expired.event).toEqual({ id: "evt_9", type: "warrant.refunded" });
    expect(JSON.parse(expired.payload).to).toBe("expired");
  });

  test("has no event where the move fires none", () => {
    expect(traceOf(next(VERIFYING, "escalated", "system"), AGENT).event).toBeNull();
    expect(traceOf(next(OPENED, "frozen", "system"), AGENT).event).toBeNull();
  });
});
