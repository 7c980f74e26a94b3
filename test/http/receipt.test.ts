import { afterAll, beforeAll, expect, test } from "bun:test";
import { createHash, createPublicKey, verify } from "node:crypto";
import canonicalize from "canonicalize";
import { MACHINE } from "../../src/services/admin/authority.ts";
import { setReceiptSpecs } from "../../src/services/admin/switches.ts";
import { anchor } from "../../src/services/log/anchor.ts";
import type { Json } from "../support/client.ts";
import { must } from "../support/organisations.ts";
import { type Service, startTestServer } from "../support/server.ts";
import { type Source, startSource } from "../support/source.ts";

/** GET /t/:id: the public receipt of a settled warrant (docs/security, "Receipts"). */

let service: Service;
let source: Source;
beforeAll(async () => {
  source = startSource();
  service = await startTestServer();
});
afterAll(async () => {
  await service?.close();
  source?.stop();
});

const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");
const sorted = (value: object): readonly string[] => Object.keys(value).sort();

test("a settled warrant's receipt needs no credential, and has exactly these fields", async () => {
  const home = await service.organisation();
  const policy = await home.addPolicy({
    bands: [
      { minScore: 0.5, outcome: "partial_release", releasedBps: 2_500 },
      { minScore: 0, outcome: "refund" },
    ],
  });
  const spec = {
    clauses: [
      { kind: "json.jsonpath", path: "$.token", equals: "observed-token" },
      { kind: "json.jsonpath", path: "$.none" },
    ],
  };
  const opened = await service.opened(home, { spec, payee: "ACME GmbH" });
  const source_url = `${source.gives({ token: "observed-token" })}?key=secret-in-url`;
  const { body: settled } = await service.post(
    `/v1/warrants/${opened.id}/verify`,
    { source_url },
    { as: home.live.as },
  );
  const { status, body, headers, text } = await service.get(`/t/${opened.id}`);
  expect([status, headers.get("etag")]).toEqual([200, null]);
  expect(sorted(body)).toEqual(["anchor", "checks", "mode", "object", "signature", "trace", "warrant"]);
  expect(body).toMatchObject({ object: "receipt", mode: "live" });
  expect(body.warrant).toEqual({
    id: opened.id,
    state: "partially_released",
    amount: "100",
    asset: "USDC",
    released_bps: 2_500,
    payee: "ACME GmbH",
    spec_hash: sha256(canonicalize(spec)!),
    spec,
    policy_version: policy.version,
    rules_hash: expect.stringMatching(/^[0-9a-f]{64}$/),
    opened_at: opened.opened_at,
    settled_at: settled.settled_at,
  });

  const [check, ...more] = body.checks;
  expect(more).toEqual([]);
  expect(check).toMatchObject({
    source_origin: new URL(source_url).origin,
    source_url_hash: sha256(source_url),
    http_status: 200,
    score: 5_000,
    passed: false,
    reason_codes: ["path_not_found"],
    evidence_hash: sha256('{"token":"observed-token"}'),
    outcome: "partial_release",
  });
  expect(check.details).toEqual([
    { kind: "json.jsonpath", passed: true, reason_code: null },
    { kind: "json.jsonpath", passed: false, reason_code: "path_not_found" },
  ]);
  const { pathname } = new URL(source_url);
  expect(text).not.toContain("secret-in-url");
  expect(text).not.toContain(`${new URL(source_url).host}${pathname}`);
  expect(text).not.toContain('"observed"');
  expect(text).not.toContain(home.id);
});

test("a receipt is signed over the RFC 8785 form of everything else in it, by a key of the JWKS", async () => {
  const home = await service.organisation();
  const { id } = await service.opened(home);
  const source_url = source.gives({});
  await service.post(`/v1/warrants/${id}/verify`, { source_url }, { as: home.live.as });
  const { keys } = (await service.get("/.well-known/jwks.json")).body;
  const expectSigned = async () => {
    const { signature, ...rest } = (await service.get(`/t/${id}`)).body;
    const [header, payload, signed] = signature.split(".");
    const jwk = keys.find((key: Json) => key.kid === JSON.parse(fromBase64Url(header)).kid);
    const key = createPublicKey({ key: jwk, format: "jwk" });
    const bytes = Buffer.from(signed, "base64url");
    expect(JSON.parse(fromBase64Url(header))).toEqual({
      alg: "EdDSA",
      kid: jwk.kid,
      typ: "holdfast-receipt+jws",
    });
    expect(verify(null, Buffer.from(`${header}.${payload}`), key, bytes)).toBe(true);
    expect(fromBase64Url(payload)).toBe(canonicalize(rest)!);
    return rest;
  };
  await expectSigned();
  await anchor(service.ctx);
  const { checkpoint, tree_size, leaf_index } = (await expectSigned()).anchor;
  expect(checkpoint).toStartWith(`holdfast/${service.ctx.reader.instance.get().id}\n${tree_size}\n`);
  expect(leaf_index).toBeLessThan(tree_size);
});

const fromBase64Url = (text: string): string => Buffer.from(text, "base64url").toString();

test("where the organisation hides its specs, receipts show their hashes alone, until it shows them again", async () => {
  const [home, other] = [await service.organisation(), await service.organisation()];
  const spec = { clauses: [{ kind: "json.jsonpath", path: "$['secret-path']", equals: "secret-value" }] };
  const settled = async (of: typeof home) => {
    const { id } = await service.opened(of, { spec });
    const source_url = source.gives({ "secret-path": "secret-value" });
    await service.post(`/v1/warrants/${id}/verify`, { source_url }, { as: of.live.as });
    return id as string;
  };
  const set = (hidden: boolean) =>
    setReceiptSpecs(service.ctx, MACHINE, { organisation_id: home.id, hidden });
  const [old, others] = [await settled(home), await settled(other)];
  const before = await service.get(`/t/${old}`);
  expect(before.body.warrant.spec).toEqual(spec);

  must(await set(true));
  for (const id of [old, await settled(home)]) {
    const { status, body, text } = await service.get(`/t/${id}`);
    expect([status, body.warrant.spec, body.warrant.spec_hash]).toEqual([
      200,
      null,
      sha256(canonicalize(spec)!),
    ]);
    expect(text).not.toContain("secret");
    // Who may read the warrant still reads what it asks for.
    expect((await service.get(`/v1/warrants/${id}`, { as: home.live.as })).body.spec).toEqual(spec);
  }
  const { body: hidden } = await service.get(`/t/${old}`);
  // The log may have got further meanwhile.
  const { signature: _, anchor: __, trace: ___, ...shown } = before.body;
  expect({ ...hidden, warrant: { ...hidden.warrant, spec } }).toMatchObject(shown);
  expect((await service.get(`/t/${others}`)).body.warrant.spec).toEqual(spec);

  must(await set(false));
  expect((await service.get(`/t/${old}`)).text).toBe(before.text);
});

test("its trace is a chain that anyone can compute again", async () => {
  const home = await service.organisation();
  const { id } = await service.opened(home);
  await service.post(`/v1/warrants/${id}/verify`, { source_url: source.gives("{}") }, { as: home.live.as });
  const { body } = await service.get(`/t/${id}`);
  const read = await service.get(`/v1/warrants/${id}/trace`, { as: home.live.as });
  expect(body.trace).toHaveLength(3);
  let previous: string | null = null;
  for (const [index, entry] of (body.trace as readonly Json[]).entries()) {
    expect([entry.sequence, entry]).toEqual([index, read.body.data[index]]);
    const { sequence, payload, payload_hash, entry_hash } = entry;
    expect(sha256(canonicalize(payload)!)).toBe(payload_hash);
    const link: object = { warrant_id: id, sequence, previous, payload_hash };
    expect(sha256(canonicalize(link)!)).toBe(entry_hash);
    previous = entry_hash;
  }
  expect(body.trace[2].payload).toMatchObject({ to: "released", evidence_hash: sha256("{}"), score: 10_000 });
});

test("every settled state has a receipt, in the sandbox too; no other state has", async () => {
  const home = await service.organisation();
  const { as } = home.people.operator;
  for (const [verb, body, state] of [
    ["release", undefined, "released"],
    ["partial", { released_bps: 1_000 }, "partially_released"],
    ["refund", undefined, "refunded"],
  ] as const) {
    const { id } = await service.opened(home);
    expect((await service.get(`/t/${id}`)).code).toBe("warrant_not_found");
    await service.post(`/v1/warrants/${id}/${verb}`, body, { as });
    const receipt = await service.get(`/t/${id}`);
    expect([receipt.status, receipt.body.warrant.state, receipt.body.checks]).toEqual([200, state, []]);
    // Everybody gets the same; even a bad credential does not matter here.
    for (const caller of [
      as,
      home.sandbox.as,
      { Authorization: "Bearer nobody" },
      { Cookie: "service_session=x" },
    ])
      expect((await service.get(`/t/${id}`, { as: caller })).text).toBe(receipt.text);
    const head = await service.send("HEAD", `/t/${id}`);
    expect([head.status, head.text]).toEqual([200, ""]);
  }

  const sandbox = await service.opened(home, {}, { as: home.sandbox.as });
  const sandboxOperator = await home.signIn(home.people.operator, "sandbox");
  await service.post(`/v1/warrants/${sandbox.id}/refund`, undefined, { as: sandboxOperator });
  expect((await service.get(`/t/${sandbox.id}`)).body.mode).toBe("sandbox");

  const escalated = await service.opened(home);
  const source_url = source.gives("no", { status: 500 });
  await service.post(`/v1/warrants/${escalated.id}/verify`, { source_url }, { as: home.live.as });
  for (const id of [escalated.id, "wrt_none", "wrt_01ARZ3NDEKTSV4RRFFQ69G5FAV", home.id, "x"]) {
    const none = await service.get(`/t/${id}`);
    expect([id, none.status, none.code]).toEqual([id, 404, "warrant_not_found"]);
  }
});
