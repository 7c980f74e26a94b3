import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import fc from "fast-check";
import { hashJson, sha256Bytes } from "../../../src/core/canonical.ts";
import { type Verdict, verifyFile } from "../../../src/core/receipt/verify.ts";
import type { Json } from "../../support/client.ts";
import type { TestOrganisation } from "../../support/organisations.ts";
import { createSigner, ORIGIN } from "../../support/receipts.ts";
import { type Service, startTestServer } from "../../support/server.ts";
import { type Source, startSource } from "../../support/source.ts";

/** What `holdfast receipt verify` and the page of a receipt accept, and what they refuse (docs/security, "What is checked"). */

const signer = createSigner();
let service: Service;
let source: Source;
let home: TestOrganisation;
/** Receipts of real warrants, anchored and signed here, by how they ended. */
let good: Readonly<Record<"partial" | "refunded" | "released" | "decided" | "digest" | "empty", Json>>;

beforeAll(async () => {
  source = startSource();
  service = await startTestServer();
  home = await service.organisation();
  const spec = {
    clauses: [
      { kind: "http.status", equals: 200 },
      { kind: "json.jsonpath", path: "$.a" },
    ],
  };
  const released = await settled(spec, { a: 1 });
  const decided = await settled(spec, {});
  await home.addPolicy({
    bands: [
      { minScore: 0.5, outcome: "partial_release", releasedBps: 2_500 },
      { minScore: 0, outcome: "refund" },
    ],
  });
  const [partial, refunded] = [await settled(spec, {}), await settled(spec, {}, 404)];
  const capitals = new Bun.CryptoHasher("sha256").update("{}").digest("hex").toUpperCase();
  const ofDigest = { clauses: [{ kind: "file.sha256", digest: capitals }] };
  const [digest, empty] = [await settled(ofDigest, {}), await settled(spec, "", 500)];
  good = { partial, refunded, released, decided, digest, empty };
});
afterAll(async () => {
  await service?.close();
  source?.stop();
});

/** A warrant that was checked and, where the policy left it to a person, refunded. Its receipt. */
async function settled(spec: object, answer: object | string, status = 200): Promise<Json> {
  const { id } = await service.opened(home, { spec });
  const source_url = source.gives(answer, { status });
  await service.post(`/v1/warrants/${id}/verify`, { source_url }, { as: home.live.as });
  const { body: receipt, status: found } = await service.get(`/t/${id}`);
  if (found !== 200) {
    await service.post(`/v1/warrants/${id}/refund`, undefined, { as: home.people.operator.as });
    return signer.anchor((await service.get(`/t/${id}`)).body);
  }
  return signer.anchor(receipt);
}

const verifyText = (text: string, jwks: unknown = signer.jwks): Promise<Verdict> =>
  verifyFile(text, { jwks, witnesses: [signer.witness] }, sha256Bytes);
const verify = (receipt: unknown, jwks?: unknown) => verifyText(JSON.stringify(receipt), jwks);
const problemsOf = async (receipt: unknown) => (await verify(receipt)).problems;

describe("a receipt that nobody altered", () => {
  test("holds, however its warrant ended", async () => {
    const states = [];
    for (const receipt of Object.values(good)) {
      const verdict = await verify(receipt);
      expect(verdict.problems).toEqual([]);
      expect(verdict).toMatchObject({
        kid: signer.jwks.keys[0]!.kid,
        origin: ORIGIN,
        cosigned: [{ name: "witness.example", at: "2030-03-17T17:46:40.000Z" }],
        unknownCosigners: [],
      });
      states.push([receipt.warrant.state, receipt.trace.length, receipt.checks.length]);
    }
    expect(states).toEqual([
      ["partially_released", 3, 1],
      ["refunded", 3, 1],
      ["released", 3, 1],
      ["refunded", 4, 1],
      ["partially_released", 3, 1],
      ["refunded", 3, 1],
    ]);
  });

  test("holds at every place of every tree, with its keys in another order and as indented text", async () => {
    for (let size = 1; size <= 9; size++)
      for (let index = 0; index < size; index++) {
        const receipt = await signer.anchor(good.released, { index, size });
        expect([size, index, await problemsOf(receipt)]).toEqual([size, index, []]);
      }
    const turned = Object.fromEntries(Object.entries(good.partial).reverse());
    expect((await verifyText(JSON.stringify(turned, null, 2))).problems).toEqual([]);
  });

  test("holds before it is in the log, unless a witness must have seen it", async () => {
    const receipt = await signer.sign({ ...good.released, anchor: null });
    const alone = await verifyFile(
      JSON.stringify(receipt),
      { jwks: signer.jwks, witnesses: [] },
      sha256Bytes,
    );
    expect([alone.problems, alone.origin]).toEqual([[], null]);
    expect(await problemsOf(receipt)).toEqual([expect.stringContaining("is not in the log yet")]);
  });

  test("holds whatever the time of a check's clock was, which may have been wrong", async () => {
    for (const evaluated_at of ["1970-01-01T00:00:00.000Z", "2999-01-01T00:00:00.000Z"]) {
      const wrong = structuredClone(good.partial);
      wrong.checks[0].evaluated_at = evaluated_at;
      expect(await problemsOf(await signer.sign(wrong))).toEqual([]);
    }
  });

  test("holds of sources at any origin", async () => {
    for (const url of [
      "http://192.0.2.1:8080/a",
      "https://[2001:db8::1]/",
      "https://שלום.example/?a=b",
      "http://a_b!$&'()*+,;=~`{}\".example",
      "HTTP://SOURCE.EXAMPLE:80",
    ]) {
      const copy = structuredClone(good.partial);
      copy.checks[0].source_origin = new URL(url).origin;
      expect([url, await problemsOf(await signer.sign(copy))]).toEqual([url, []]);
    }
  });

  test("holds without its spec", async () => {
    const { warrant } = good.partial;
    expect(
      await problemsOf(await signer.sign({ ...good.partial, warrant: { ...warrant, spec: null } })),
    ).toEqual([]);
  });

  test("names whoever signed its checkpoint with a key that nobody gave", async () => {
    const verdict = await verifyFile(
      JSON.stringify(good.released),
      { jwks: signer.jwks, witnesses: [] },
      sha256Bytes,
    );
    expect([verdict.problems, verdict.cosigned, verdict.unknownCosigners]).toEqual([
      [],
      [],
      ["witness.example"],
    ]);
  });
});

/** Every value in a tree, with its path: scalars, and objects and lists themselves. */
function* valuesIn(value: unknown, path: readonly (string | number)[] = []): Generator<(string | number)[]> {
  if (path.length > 0) yield [...path];
  if (typeof value !== "object" || value === null) return;
  for (const [key, child] of Object.entries(value))
    yield* valuesIn(child, [...path, Array.isArray(value) ? Number(key) : key]);
}

/** A copy with the value at the path changed; `undefined` deletes it. */
function altered(root: Json, path: readonly (string | number)[], change: (value: unknown) => unknown): Json {
  const copy = structuredClone(root);
  const last = path.at(-1)!;
  const parent = path.slice(0, -1).reduce((at: Json, key) => at[key], copy);
  const value = change(parent[last]);
  if (value === undefined) {
    if (Array.isArray(parent)) parent.splice(Number(last), 1);
    else delete parent[last];
  } else parent[last] = value;
  return copy;
}

const CHANGES: readonly ((value: unknown) => unknown)[] = [
  () => undefined,
  (value) => (value === null ? 1 : null),
  (value) => (typeof value === "number" ? value + 1 : typeof value === "boolean" ? !value : `${value}0`),
  (value) => (typeof value === "string" ? value.slice(0, -1) : [value]),
  (value) => (typeof value === "string" ? value.replace(/[0-9a-z]/, (one) => (one === "1" ? "2" : "1")) : {}),
  (value) => (Array.isArray(value) && value.length > 1 ? value.toReversed() : "x"),
  (value) => (Array.isArray(value) ? [...value, ...value, 1] : { x: value }),
];

describe("an altered receipt is refused, and what does not match is named:", () => {
  test("any value, changed in any of these ways", async () => {
    let count = 0;
    for (const path of valuesIn(good.partial))
      for (const [index, change] of CHANGES.entries()) {
        const receipt = altered(good.partial, path, change);
        if (Bun.deepEquals(receipt, good.partial)) continue;
        count += 1;
        const { problems } = await verify(receipt);
        if (problems.length === 0) throw new Error(`accepted ${path.join(".")} changed by ${index}`);
      }
    expect(count).toBeGreaterThan(900);
  }, 30_000);

  test("any value, replaced by any other", async () => {
    const paths = [...valuesIn(good.released)];
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...paths), fc.jsonValue(), async (path, value) => {
        const receipt = altered(good.released, path, () => value);
        fc.pre(!Bun.deepEquals(receipt, good.released));
        expect((await verify(receipt)).problems).not.toEqual([]);
      }),
      { numRuns: 200 },
    );
  });

  test("a field more, anywhere", async () => {
    for (const path of [[], ...valuesIn(good.released)]) {
      const add = (value: unknown) =>
        typeof value === "object" && value && !Array.isArray(value) ? { ...value, more: 1 } : undefined;
      const receipt =
        path.length === 0
          ? { ...good.released, more: 1 }
          : altered(good.released, path, (value) => add(value) ?? value);
      if (Bun.deepEquals(receipt, good.released)) continue;
      expect([path, (await verify(receipt)).problems]).not.toEqual([path, []]);
    }
  });

  test("any character of the signature or the checkpoint", async () => {
    for (const path of [["signature"], ["anchor", "checkpoint"]]) {
      const text: string = path.reduce((at: Json, key) => at[key], good.released);
      // All of the last hundred, and of what is before them every 41st.
      for (let at = 0; at < text.length; at += text.length - at > 100 ? 41 : 1) {
        const other = text[at] === "A" ? "B" : "A";
        const receipt = altered(good.released, path, () => text.slice(0, at) + other + text.slice(at + 1));
        if ((await verify(receipt)).problems.length === 0)
          throw new Error(`accepted ${path} altered at ${at}`);
      }
    }
  });

  test("any value of the key that signed", async () => {
    const [key] = signer.jwks.keys;
    for (const name of Object.keys(key!))
      for (const value of [null, `${key![name]}x`, "", undefined]) {
        const { problems } = await verify(good.released, { keys: [{ ...key, [name]: value }] });
        expect([name, problems]).not.toEqual([name, []]);
      }
    for (const jwks of [
      {},
      { keys: [] },
      { keys: {} },
      [],
      "x",
      1,
      { keys: signer.jwks.keys.slice(1) },
      createSigner().jwks,
    ])
      expect((await verify(good.released, jwks)).problems).not.toEqual([]);
    expect((await verify(good.released, null)).problems).toEqual([
      "no keys were given, so no signature was verified",
    ]);
  });

  test("a key under a kid that is not its thumbprint", async () => {
    const other = createSigner();
    const lie = (jwks: Json) => ({ keys: [{ ...jwks.keys[0], kid: signer.jwks.keys[0]!.kid }] });
    // A reader who knows the instance's kid would believe this one.
    const forged = await other.sign(good.released);
    const [head, body] = forged.signature.split(".");
    expect(JSON.parse(Buffer.from(head, "base64url").toString()).kid).toBe(other.jwks.keys[0]!.kid);
    expect(body).toBe(good.released.signature.split(".")[1]);
    expect((await verify(forged, lie(other.jwks))).problems).toContain(
      "the JWKS has a key that is not an Ed25519 key of a signature, or whose kid is not its thumbprint, or none",
    );
  });

  test("the same key twice in its text", async () => {
    const text = JSON.stringify(good.released).replace('"mode":', '"mode":"sandbox","mode":');
    expect((await verifyText(text)).problems).toEqual(["the receipt has the same key twice in one object"]);
  });

  test("the sentence says what was signed", async () => {
    const digit = altered(good.partial, ["warrant", "amount"], () => "101");
    expect(await problemsOf(digit)).toContain('warrant.amount is "101", but what was signed says "100"');
    const clause = altered(good.partial, ["checks", 0, "details", 1, "passed"], () => true);
    expect(await problemsOf(clause)).toContain(
      "checks[0].details[1].passed is true, but what was signed says false",
    );
  });
});

test("of a file that is wrong throughout, the first problems are enough", async () => {
  const trace = Array.from({ length: 100_000 }, () => ({}));
  const before = performance.now();
  expect((await verify({ ...good.released, trace })).problems.length).toBe(10);
  const many = Array.from({ length: 20 }, () => good.released.trace[0]);
  expect((await verify({ ...good.released, trace: many })).problems.length).toBeLessThan(20);
  expect(performance.now() - before).toBeLessThan(5_000);
});

test("junk is refused, and nothing throws", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.oneof(
        fc.string(),
        fc.json(),
        fc.uint8Array().map((bytes) => String.fromCharCode(...bytes)),
      ),
      async (text) => {
        expect((await verifyText(text)).problems).not.toEqual([]);
      },
    ),
    { numRuns: 100 },
  );
  // A log under a name that no key may have.
  for (const origin of ["holdfast/a b", "holdfast/a+b", "holdfast/\u2028", `holdfast/${"x".repeat(300)}`]) {
    const copy = structuredClone(good.released);
    copy.anchor.checkpoint = copy.anchor.checkpoint.replace(ORIGIN, origin);
    const problems = await problemsOf(await signer.sign(copy));
    expect(problems.join("\n")).toContain("a signature of anchor.checkpoint does not verify");
  }
  const deep = "[".repeat(10_000);
  for (const text of [
    "",
    "null",
    "{}",
    deep,
    deep + "]".repeat(10_000),
    '{"a":'.repeat(1_000),
    "\ud800",
    "1e999",
  ])
    expect((await verifyText(text)).problems).not.toEqual([]);
});

test("whatever note is in its place, the checkpoint is refused, and nothing throws", async () => {
  const [text = "", lines = ""] = good.released.anchor.checkpoint.split("\n\n");
  const pieces = [
    ...text.split("\n"),
    ...lines.split("\n"),
    "",
    "holdfast/a b",
    "— a AAAA",
    "— a b",
    "0",
    "x",
  ];
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.constantFrom(...pieces), { maxLength: 9 }),
      fc.boolean(),
      async (some, ends) => {
        const checkpoint = some.join("\n") + (ends ? "\n" : "");
        fc.pre(checkpoint !== good.released.anchor.checkpoint);
        const receipt = { ...good.released, anchor: { ...good.released.anchor, checkpoint } };
        expect((await verify(await signer.sign(receipt))).problems).not.toEqual([]);
      },
    ),
    { numRuns: 300 },
  );
});

/** What the instance itself could sign, and no honest one does. Each is signed anew, so that the signature holds. */
const LIES: readonly (readonly [
  what: string,
  receipt: keyof typeof good,
  lie: (receipt: Json) => void,
  problem: string,
])[] = [
  [
    "evidence that is said to be signed, by no key",
    "partial",
    (r) => (r.checks[0].evidence = "signed by the source"),
    'checks[0].evidence is "signed by the source", not "observed by this instance"',
  ],
  [
    "evidence that is said to be observed, with a key",
    "partial",
    (r) => (r.checks[0].signed_by = "key"),
    'checks[0].evidence is "observed by this instance", not "signed by the source"',
  ],
  [
    "a check without its evaluator's version",
    "partial",
    (r) => delete r.checks[0].evaluator_version,
    "checks[0] has some of evaluator_version, evidence and signed_by, and lacks others",
  ],
  [
    "another spec",
    "partial",
    (r) => (r.warrant.spec.clauses[0].equals = 404),
    "warrant.spec does not have the hash",
  ],
  [
    "another amount",
    "partial",
    (r) => (r.warrant.amount = "1000"),
    'warrant.amount is "1000", but trace[0].payload says "100"',
  ],
  ["another asset", "partial", (r) => (r.warrant.asset = "EURC"), "warrant.asset is"],
  ["another payee", "partial", (r) => (r.warrant.payee = "b"), "warrant.payee is"],
  [
    "another mode",
    "partial",
    (r) => (r.mode = "sandbox"),
    'mode is "sandbox", but trace[0].payload says "live"',
  ],
  ["another id", "partial", (r) => (r.warrant.id = "wrt_2"), 'warrant.id is "wrt_2"'],
  ["another policy", "partial", (r) => (r.warrant.policy_version = 9), "warrant.policy_version is 9"],
  ["other rules", "partial", (r) => (r.warrant.rules_hash = "0".repeat(64)), "warrant.rules_hash is"],
  [
    "another hash of the spec",
    "partial",
    (r) => (r.warrant.spec_hash = "0".repeat(64)),
    "warrant.spec_hash is",
  ],
  [
    "another state",
    "partial",
    (r) => (r.warrant.state = "released"),
    'warrant.state is "released", but its trace says',
  ],
  [
    "another share",
    "partial",
    (r) => (r.warrant.released_bps = 9_000),
    "warrant.released_bps is 9000, but its trace says 2500",
  ],
  [
    "another opening",
    "partial",
    (r) => (r.warrant.opened_at = "2000-01-01T00:00:00.000Z"),
    "warrant.opened_at is",
  ],
  [
    "another settlement",
    "partial",
    (r) => (r.warrant.settled_at = "2000-01-01T00:00:00.000Z"),
    "warrant.settled_at is",
  ],
  [
    "a payload that was written anew",
    "partial",
    (r) => (r.trace[1].payload.agent_id = "agt_x"),
    "trace[1].payload does not have the hash",
  ],
  [
    "another hash of a payload",
    "partial",
    (r) => (r.trace[1].payload_hash = "0".repeat(64)),
    "trace[1].payload does not have the hash",
  ],
  [
    "another hash of an entry",
    "partial",
    (r) => (r.trace[0].entry_hash = "0".repeat(64)),
    "trace[1].entry_hash is not the hash of entry 1",
  ],
  [
    "a state beside the payload",
    "partial",
    (r) => (r.trace[1].to = "released"),
    'trace[1].to is "released", but its payload says',
  ],
  ["an actor beside the payload", "partial", (r) => (r.trace[1].actor.id = "key_x"), "trace[1].actor is"],
  [
    "a time beside the payload",
    "partial",
    (r) => (r.trace[1].recorded_at = "2000-01-01T00:00:00.000Z"),
    "trace[1].recorded_at is",
  ],
  [
    "rules beside the payload",
    "partial",
    (r) => (r.trace[1].rules_hash = "0".repeat(64)),
    "trace[1].rules_hash is",
  ],
  ["a beginning beside the payload", "partial", (r) => (r.trace[1].from = null), "trace[1].from is"],
  ["another number", "partial", (r) => (r.trace[1].sequence = 5), "trace[1].sequence is 5"],
  ["an entry left out", "decided", (r) => r.trace.splice(1, 1), "an entry is missing or out of order"],
  ["entries in another order", "decided", (r) => r.trace.reverse(), "an entry is missing or out of order"],
  ["no entry", "decided", (r) => r.trace.splice(0), "the trace has no entry"],
  ["the end left out", "decided", (r) => r.trace.pop(), "warrant.state is"],
  ["a check left out", "partial", (r) => r.checks.pop(), "the checks are not those that the trace names"],
  [
    "a check twice",
    "partial",
    (r) => r.checks.push(r.checks[0]),
    "the checks are not those that the trace names",
  ],
  [
    "another check",
    "partial",
    (r) => (r.checks[0].id = "chk_x"),
    "the checks are not those that the trace names",
  ],
  [
    "another score",
    "partial",
    (r) => (r.checks[0].score = 10_000),
    "checks[0].score is 10000, but the trace says 5000",
  ],
  [
    "another evidence",
    "partial",
    (r) => (r.checks[0].evidence_hash = "0".repeat(64)),
    "checks[0].evidence_hash is",
  ],
  ["other codes", "partial", (r) => (r.checks[0].reason_codes = []), "checks[0].reason_codes is []"],
  [
    "another outcome",
    "partial",
    (r) => (r.checks[0].outcome = "release"),
    'checks[0].outcome is "release", but the trace says',
  ],
  [
    "an outcome that there is not",
    "partial",
    (r) => (r.checks[0].outcome = "toString"),
    "checks[0].outcome is",
  ],
  [
    "another kind of clause",
    "partial",
    (r) => (r.checks[0].details[0].kind = "x"),
    "checks[0].details are not of the spec's clauses",
  ],
  [
    "a clause left out",
    "partial",
    (r) => r.checks[0].details.pop(),
    "checks[0].details are not of the spec's clauses",
  ],
  [
    "a clause that passed",
    "partial",
    (r) => (r.checks[0].details[1] = { kind: "json.jsonpath", passed: true, reason_code: null }),
    "checks[0].score is 5000, but 2 of 2 clauses passed",
  ],
  [
    "a pass with a reason",
    "partial",
    (r) => (r.checks[0].details[0].reason_code = "x"),
    "checks[0].details[0] says passed true with the reason",
  ],
  [
    "a clean pass",
    "partial",
    (r) => (r.checks[0].passed = true),
    "checks[0].passed is true, but 1 of 2 clauses failed",
  ],
  [
    "another reason",
    "partial",
    (r) => (r.checks[0].details[1].reason_code = "x"),
    "checks[0].reason_codes do not begin with",
  ],
  [
    "another status than a clause has passed with",
    "partial",
    (r) => (r.checks[0].http_status = 500),
    "checks[0].details[0] says that http.status passed, but it asks for 200 and checks[0].http_status is 500",
  ],
  [
    "no status at all, though a clause has passed with one",
    "partial",
    (r) => (r.checks[0].http_status = null),
    "checks[0].details[0] says that http.status passed, but it asks for 200 and checks[0].http_status is null",
  ],
  [
    "the status that a clause has failed for",
    "refunded",
    (r) => (r.checks[0].http_status = 200),
    "checks[0].details[0] says that http.status failed, but it asks for 200 and checks[0].http_status is 200",
  ],
  [
    "a digest that is not that of the evidence",
    "digest",
    (r) => (r.warrant.spec.clauses[0].digest = "0".repeat(64)),
    "checks[0].details[0] says that file.sha256 passed, but it asks for ",
  ],
  [
    "a digest that is that of the evidence",
    "digest",
    (r) => Object.assign(r.checks[0].details[0], { passed: false, reason_code: "digest_mismatch" }),
    "checks[0].details[0] says that file.sha256 failed, but it asks for ",
  ],
  [
    "evidence of no bytes",
    "partial",
    (r) => (r.checks[0].bytes = 0),
    "checks[0].bytes is 0, but checks[0].evidence_hash is not that of no bytes",
  ],
  [
    "bytes without evidence",
    "empty",
    (r) => (r.checks[0].bytes = 1),
    "checks[0].bytes is 1, but checks[0].evidence_hash is that of no bytes",
  ],
  ...[
    "javascript:alert(1)",
    "ftp://source.example",
    "http://source.example/",
    "http://source.example?a",
    "http://source.example#a",
    "http://a@source.example",
    "http://source.example\\a",
    "http://source .example",
    "http://s\u043eurce.example",
    "http://",
    "",
  ].map(
    (origin) =>
      [
        `the source ${JSON.stringify(origin)}`,
        "partial",
        (r: Json) => (r.checks[0].source_origin = origin),
        `checks[0].source_origin is ${JSON.stringify(origin)}, which is no origin of http or https`,
      ] as const,
  ),
  ["another proof", "partial", (r) => r.anchor.proof.reverse(), "anchor.proof does not lead"],
  ["a proof cut short", "partial", (r) => r.anchor.proof.pop(), "anchor.proof does not lead"],
  ["another place", "partial", (r) => (r.anchor.leaf_index = 2), "anchor.proof does not lead"],
  ["another root", "partial", (r) => (r.anchor.root = "0".repeat(64)), "but the checkpoint says"],
  [
    "another size",
    "partial",
    (r) => (r.anchor.tree_size = 8),
    "anchor.tree_size is 8, but the checkpoint says 7",
  ],
  ["no note", "partial", (r) => (r.anchor.checkpoint = "x"), "anchor.checkpoint is not a signed note"],
  [
    "another instance's reference",
    "partial",
    (r) => (r.anchor.chain_ref = "local:ins_2#1"),
    "but the checkpoint is of",
  ],
  [
    "a block that is none",
    "partial",
    (r) => {
      r.anchor.chain_ref = "eip155:8453#-1";
      r.trace.at(-1).chain_ref = "eip155:8453#-1";
    },
    "which names no block of a chain",
  ],
  [
    "another reference of the entry",
    "partial",
    (r) => (r.trace.at(-1).chain_ref = "local:ins_1#9"),
    "but the settling entry says",
  ],
  [
    "a checkpoint without the log's line",
    "partial",
    (r) => (r.anchor.checkpoint = r.anchor.checkpoint.replace(/— holdfast.*\n/, "")),
    "is not signed by a key of",
  ],
  [
    "a checkpoint without the witness",
    "partial",
    (r) => (r.anchor.checkpoint = r.anchor.checkpoint.replace(/— witness.*\n/, "")),
    "no cosignature of the witness",
  ],
  [
    "a cosignature of another time",
    "partial",
    (r) => (r.anchor.checkpoint = r.anchor.checkpoint.replace(/(— witness\S+ .{10})./, "$1A")),
    "a signature of anchor.checkpoint does not verify",
  ],
];

describe("a receipt that its instance signed, but that contradicts itself, is refused:", () => {
  for (const [what, name, lie, problem] of LIES)
    test(what, async () => {
      const copy = structuredClone(good[name]);
      lie(copy);
      const problems = await problemsOf(await signer.sign(copy));
      expect(problems.join("\n")).toContain(problem);
      expect(problems.join("\n")).not.toContain("what was signed");
    });

  /** A trace that is hashed anew as well: only the moves themselves are wrong. */
  const MOVES: readonly (readonly [what: string, lie: (receipt: Json) => void, problem: string])[] = [
    ["a move that there is not", (r) => move(r, 1, { to: "disputed" }), "which no warrant does"],
    [
      "a system that opens",
      (r) => move(r, 0, { actor: { kind: "system", id: null } }),
      "which no warrant does",
    ],
    [
      "an agent that settles",
      (r) => move(r, 2, { actor: { kind: "agent", id: "key_1" } }),
      "which no warrant does",
    ],
    [
      "nobody whom we know",
      (r) => move(r, 1, { actor: { kind: "constructor", id: "x" } }),
      "which no warrant does",
    ],
    [
      "a system with an id",
      (r) => move(r, 2, { actor: { kind: "system", id: "x" } }),
      "trace[2].actor.id is",
    ],
    ["another beginning", (r) => move(r, 2, { from: "held" }), "trace[2] begins at"],
    [
      "time that runs back",
      (r) => move(r, 1, { recorded_at: "2000-01-01T00:00:00.000Z" }),
      "recorded before the entry",
    ],
    [
      "a share of a hold",
      (r) => move(r, 0, { released_bps: 1 }),
      "released_bps is 1, which does not go with",
    ],
    ["a partial release of all", (r) => move(r, 2, { released_bps: 10_000 }), "which does not go with"],
    ["another version", (r) => move(r, 1, { version: 7 }), "trace[1].payload.version is 7, not 2"],
    ["another agent on the way", (r) => move(r, 1, { agent_id: "agt_x" }), "is not that of the first entry"],
    [
      "another policy on the way",
      (r) => move(r, 1, { policy_id: "pol_x" }),
      "is not that of the first entry",
    ],
    [
      "a warrant that is not settled",
      (r) => {
        r.trace.pop();
        r.checks = [];
        Object.assign(r.warrant, {
          state: "verifying",
          released_bps: null,
          settled_at: r.trace[1].recorded_at,
        });
      },
      "which is not settled",
    ],
  ];
  for (const [what, lie, problem] of MOVES)
    test(what, async () => {
      const copy = structuredClone(good.partial);
      lie(copy);
      const problems = await problemsOf(await signer.anchor(copy));
      expect(problems.join("\n")).toContain(problem);
      expect(problems.join("\n")).not.toContain("hash");
    });
});

test("a settlement that is recorded long after its cosignature is genuine: one of the clocks was wrong", async () => {
  const copy = structuredClone(good.released);
  const recorded_at = "2030-06-01T00:00:00.000Z";
  move(copy, copy.trace.length - 1, { recorded_at });
  copy.warrant.settled_at = recorded_at;
  expect(await problemsOf(await signer.anchor(copy))).toEqual([]);
});

/** Changes a move, and writes every hash of the trace anew. */
function move({ trace, warrant }: Json, at: number, change: object): void {
  Object.assign(trace[at].payload, change);
  for (const name of ["to", "from", "actor", "recorded_at"]) trace[at][name] = trace[at].payload[name];
  let previous: string | null = null;
  for (const [sequence, entry] of trace.entries()) {
    entry.payload_hash = hashJson(entry.payload);
    const { payload_hash } = entry;
    entry.entry_hash = hashJson({ warrant_id: warrant.id, sequence, previous, payload_hash });
    previous = entry.entry_hash;
  }
}

test("a signature of another type, by another algorithm or without one is refused", async () => {
  const voucher = await signer.sign(good.released, "holdfast-voucher+jwt");
  expect(await problemsOf(voucher)).toEqual([expect.stringContaining("header is not that of")]);
  const [, body, end] = good.released.signature.split(".");
  const head = (header: object) => Buffer.from(JSON.stringify(header)).toString("base64url");
  const kid = signer.jwks.keys[0]!.kid;
  for (const header of [
    { alg: "none", kid, typ: "holdfast-receipt+jws" },
    { alg: "EdDSA", kid, typ: "holdfast-receipt+jws", crit: ["b64"] },
    { alg: "EdDSA", typ: "holdfast-receipt+jws" },
  ])
    expect(await problemsOf({ ...good.released, signature: `${head(header)}.${body}.${end}` })).toEqual([
      expect.stringContaining("header is not that of"),
    ]);
  expect(await problemsOf({ ...good.released, signature: null })).toEqual([
    "the receipt is not signed, so anybody may have written it",
  ]);
  const text: string = good.released.signature;
  for (const signature of ["", "..", `${text}.x`, `${text}=`, text.slice(0, -1)])
    expect(await problemsOf({ ...good.released, signature })).toEqual(["the signature is not a compact JWS"]);
});
