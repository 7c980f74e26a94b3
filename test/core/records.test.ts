import { expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { type Check, checkHashOf, checkResource } from "../../src/core/check.ts";
import { DECISIONS } from "../../src/core/escalation.ts";

const CHECK: Check = {
  id: "chk_1",
  warrantId: "wrt_1",
  sourceUrl: "https://x.example/",
  httpStatus: 200,
  bytes: 2,
  durationMs: 15,
  score: 5_000,
  passed: false,
  reasonCodes: ["data_stale"],
  evidenceHash: "e".repeat(64),
  details: [],
  outcome: "escalate",
  bandLabel: null,
  evaluatedAt: Date.UTC(2030, 0, 15, 12),
  evaluatorVersion: 1,
  signedBy: null,
  capsuleHash: "c".repeat(64),
};

test("a check shows exactly these fields", () => {
  expect(checkResource(CHECK)).toEqual({
    id: "chk_1",
    object: "check",
    warrant_id: "wrt_1",
    source_url: "https://x.example/",
    http_status: 200,
    bytes: 2,
    duration_ms: 15,
    score: 5_000,
    passed: false,
    reason_codes: ["data_stale"],
    evidence_hash: "e".repeat(64),
    details: [],
    outcome: "escalate",
    band_label: null,
    evaluated_at: "2030-01-15T12:00:00.000Z",
    evaluator_version: 1,
    signed_by: null,
    capsule_hash: "c".repeat(64),
  });
});

test("its hash is that of its canonical JSON, recomputed by hand", () => {
  const text =
    `{"band_label":null,"bytes":2,"capsule_hash":"${"c".repeat(64)}","details":[],` +
    '"duration_ms":15,"evaluated_at":"2030-01-15T12:00:00.000Z","evaluator_version":1,' +
    `"evidence_hash":"${"e".repeat(64)}","http_status":200,"id":"chk_1","object":"check","outcome":"escalate",` +
    '"passed":false,"reason_codes":["data_stale"],"score":5000,"signed_by":null,' +
    '"source_url":"https://x.example/","warrant_id":"wrt_1"}';
  expect(checkHashOf(CHECK)).toBe(createHash("sha256").update(text).digest("hex"));
});

test("a check of before there were capsules was hashed without their fields", () => {
  const old: Check = { ...CHECK, evaluatorVersion: null, capsuleHash: null };
  const text =
    '{"band_label":null,"bytes":2,"details":[],"duration_ms":15,"evaluated_at":"2030-01-15T12:00:00.000Z",' +
    `"evidence_hash":"${"e".repeat(64)}","http_status":200,"id":"chk_1","object":"check","outcome":"escalate",` +
    '"passed":false,"reason_codes":["data_stale"],"score":5000,"source_url":"https://x.example/",' +
    '"warrant_id":"wrt_1"}';
  expect(checkHashOf(old)).toBe(createHash("sha256").update(text).digest("hex"));
});

test("a person decides in four ways", () => {
  expect([...DECISIONS]).toEqual(["release", "partial_release", "refund", "dispute"]);
});
