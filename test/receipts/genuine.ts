import { expect } from "bun:test";
import { canonicalJson } from "../../src/core/canonical.ts";
import { UNSEEN_ANSWER } from "../../src/core/capsule.ts";
import { reachedEvidence } from "../../src/core/clauses/evidence.ts";
import { logNameOf } from "../../src/core/log.ts";
import { RECEIPT_TYPE } from "../../src/core/receipt/signature.ts";
import { formatVerifierKey } from "../../src/core/signed-note.ts";
import type { LogToWitness } from "../../src/core/witness.ts";
import { sweepDeadlines } from "../../src/jobs/deadlines.ts";
import { witnessJob } from "../../src/jobs/witnesses.ts";
import { noteSignerOf } from "../../src/platform/note-keys.ts";
import { createTokens, newSigningKey, type Tokens } from "../../src/platform/tokens.ts";
import { MACHINE } from "../../src/services/admin/authority.ts";
import { setReceiptSpecs } from "../../src/services/admin/switches.ts";
import { anchor, logKeysOf } from "../../src/services/log/anchor.ts";
import { ownLogOf } from "../../src/services/witness/own-log.ts";
import type { Credentials } from "../support/client.ts";
import { NO_WITNESSES } from "../support/context.ts";
import { HOSTILE_ANSWER, HOSTILE_SOURCE, settleHostile } from "../support/hostile-receipt.ts";
import { noFault } from "../support/no-fault.ts";
import { must, type TestOrganisation } from "../support/organisations.ts";
import { type ShellService, startTestShell } from "../support/server.ts";
import { listen } from "../x402/listener.ts";

/** Receipts of every kind, as `GET /t/:id` answers them, with what they are verified against. */
export type Case = {
  readonly name: string;
  /** The text of the receipt, byte for byte. */
  readonly receipt: string;
  /** The text of the JWKS. */
  readonly jwks: string;
  /** The verifier keys of witnesses that must have cosigned. */
  readonly witnesses: readonly string[];
};

export type Genuine = {
  readonly cases: readonly Case[];
  /** The one that has everything: a share, a check, a place in the log, a witness, and a key after the first. */
  readonly cosigned: Case;
  /** The page of the same receipt, as it is saved. */
  readonly saved: string;
} & Tokens;

const HOUR_MS = 3_600_000;
const SOURCE = "http://source.example/";
const OK = { kind: "http.status", equals: 200 } as const;
const FOUND = { kind: "json.jsonpath", path: "$.a" } as const;

/** A service without a socket, another that witnesses it, and the answers of its source. */
function startBoth() {
  const first = newSigningKey();
  let current = createTokens(first);
  const tokens = {
    sign: (payload: string, type: string) => current.sign(payload, type),
    signBytes: (message: Uint8Array) => current.signBytes(message),
    get jwks() {
      return current.jwks;
    },
  };
  const signer = noteSignerOf("holdfast/ins_w/witness", "cosignature", new Uint8Array(32).fill(9));
  const logs: LogToWitness[] = [];
  const witness = startTestShell({ witness: { ...NO_WITNESSES, logs, signer: async () => signer } });
  const answers = new Map<string, { status: number; body: string }>();
  const service = startTestShell({
    tokens,
    async fetchEvidence(url) {
      const { status, body } = answers.get(url)!;
      const evidence = reachedEvidence({ status, body: Buffer.from(body) });
      return { evidence, status, bytes: body.length, durationMs: 1, answer: UNSEEN_ANSWER };
    },
    witness: {
      ...NO_WITNESSES,
      witnesses: [{ key: signer.key, url: "" }],
      async ask(path, body) {
        const options = { headers: { "Content-Type": "text/plain" }, key: null };
        const { status, text } = await witness.post(`/.well-known/holdfast/witness${path}`, body, options);
        return { status, text };
      },
    },
  });
  return {
    ...{ service, witness, signer },
    gives(body: string, status = 200, source = SOURCE): string {
      const url = `${source}${answers.size}`;
      answers.set(url, { status, body });
      return url;
    },
    /** A new key signs from now on. */
    rotate: () => {
      current = createTokens(`${newSigningKey()}\n${first}`);
    },
    async cosign(): Promise<void> {
      const origin = logNameOf(service.ctx.reader.instance.get().id);
      logs.splice(0, 1, { origin, keys: logKeysOf(origin, tokens) });
      const log = () => ownLogOf(service.ctx);
      for (const one of service.ctx.witness.witnesses)
        await witnessJob(service.ctx, one, { log, monotonicNow: () => 0, onChange: () => {} }).run();
    },
    async close() {
      await service.close();
      await witness.close();
    },
  };
}

type Both = ReturnType<typeof startBoth>;

/** Settles warrants in every way; their ids by what happened to them. */
async function settleAll({ service, gives }: Both): Promise<Readonly<Record<string, string>>> {
  const [home, hidden] = [await service.organisation(9_999_999n), await service.organisation()];
  must(await setReceiptSpecs(service.ctx, MACHINE, { organisation_id: hidden.id, hidden: true }));
  const { live, sandbox, people } = home;
  const checked = (source_url: string, body: object = {}, { of = home, as = live.as } = {}) =>
    checkedIn(service, of, source_url, body, as);
  const decided = async (path: string, body?: object) => {
    const id = await checked(gives("{}"), { amount: "10000" });
    const reply = await service.post(`/v1/warrants/${id}/${path}`, body, { as: people.operator.as });
    expect(reply.status).toBe(200);
    return id;
  };
  const strange = await settleHostile(service, live.as, gives(HOSTILE_ANSWER, 200, HOSTILE_SOURCE));
  // No text with a lone surrogate comes in.
  const lone = JSON.stringify(service.body({ payee: "\ud800" }));
  expect((await service.post("/v1/warrants", lone, { as: live.as })).code).toBe("validation_failed");

  const settled = {
    released: await checked(gives('{"a":1}')),
    "hostile strings and numbers": strange,
    "in the sandbox": await checked(gives('{"a":1}'), {}, { as: sandbox.as }),
    "with its spec hidden": await checked(gives('{"a":1}'), {}, { of: hidden, as: hidden.live.as }),
    "released by a person, after a check": await decided("release"),
    "a share by a person": await decided("partial", { released_bps: 1 }),
    "refunded by a person": await decided("refund"),
    bought: await bought(service, live.as),
    expired: (await service.opened(home)).id as string,
  };
  await home.addPolicy({
    bands: [
      { minScore: 0.5, outcome: "partial_release", releasedBps: 3_333 },
      { minScore: 0, outcome: "refund" },
    ],
  });
  service.clock.now += 2 * HOUR_MS;
  expect(await sweepDeadlines(service.ctx, noFault)).toBe(1);
  const three = { amount: "100001", spec: { clauses: [OK, FOUND, OK] } };
  return {
    ...settled,
    "a share by the policy": await checked(gives("{}"), three),
    "refunded by the policy": await checked(gives("not JSON", 404), three),
  };
}

/** A warrant that was opened and checked. */
async function checkedIn(
  service: ShellService,
  of: TestOrganisation,
  source_url: string,
  body: object,
  as: Credentials,
): Promise<string> {
  const terms = { spec: { clauses: [OK, FOUND] }, deadline: service.timeIn(HOUR_MS), ...body };
  const { id } = await service.opened(of, terms, { as });
  expect((await service.post(`/v1/warrants/${id}/verify`, { source_url }, { as })).status).toBe(200);
  return id;
}

/** A purchase of a seller that takes vouchers. */
async function bought(service: ShellService, as: Credentials): Promise<string> {
  const seller = await listen((request) =>
    request.headers.get("x-payment") === null
      ? Response.json({ amount: "100", asset: "USDC", payee: "acme" }, { status: 402 })
      : Response.json({ a: 1 }),
  );
  const order = { url: seller.url, max_amount: "1000", spec: { clauses: [OK, FOUND] } };
  const { body } = await service.post("/v1/x402/pay", order, { as });
  await seller.close();
  expect([body.state, body.paid]).toEqual(["released", true]);
  return body.warrant_id;
}

/** Makes them, and hands them to `use`; the services are closed and audited after that. */
export async function withGenuine(use: (genuine: Genuine) => Promise<void>): Promise<void> {
  const both = startBoth();
  try {
    await use(await makeGenuine(both));
  } finally {
    await both.close();
  }
}

/** The receipt as an instance answers it that brings its log to a chain. */
async function onChain(one: Case, chain_ref: string | null, { sign }: Tokens): Promise<Case> {
  const { signature: _, ...rest } = JSON.parse(one.receipt);
  for (const entry of [...rest.trace, rest.anchor]) entry.chain_ref = chain_ref;
  const signature = await sign(canonicalJson(rest), RECEIPT_TYPE);
  return { ...one, name: `on a chain: ${chain_ref}`, receipt: JSON.stringify({ ...rest, signature }) };
}

async function makeGenuine(both: Both): Promise<Genuine> {
  const { service, signer } = both;
  const witness = formatVerifierKey(signer.key);
  const shown = async (name: string, id: string, witnesses: readonly string[] = []): Promise<Case> => ({
    ...{ name, witnesses },
    receipt: (await service.get(`/t/${id}`)).text,
    jwks: (await service.get("/.well-known/jwks.json")).text,
  });
  const ids = await settleAll(both);
  const id = ids["a share by the policy"]!;
  const cases = [await shown("not in the log yet", id)];
  await anchor(service.ctx);
  for (const [name, id] of Object.entries(ids)) cases.push(await shown(name, id));
  await both.cosign();
  const cosigned = await shown("cosigned", id, [witness]);
  cases.push(cosigned, { ...cosigned, name: "cosigned, with no witness asked for", witnesses: [] });
  cases.push({
    ...cosigned,
    name: "indented",
    receipt: JSON.stringify(JSON.parse(cosigned.receipt), null, 2),
  });

  both.rotate();
  const { jwks } = await shown("", id);
  cases.push({ ...cosigned, name: "signed before the key was rotated", jwks });
  const again = await shown("asked for after the key was rotated", id, [witness]);
  cases.push(again);
  const home = await service.organisation();
  const later = await checkedIn(service, home, both.gives('{"a":1}'), {}, home.live.as);
  await anchor(service.ctx);
  await both.cosign();
  const after = await shown("settled after the key was rotated", later, [witness]);
  cases.push(after);
  for (const chainRef of [null, "eip155:8453#1234"])
    cases.push(await onChain(after, chainRef, service.ctx.tokens));
  expect(new Set(cases.map(({ name }) => name)).size).toBe(cases.length);
  const saved = (await service.get(`/t/${id}/receipt.html`)).text;
  return { ...service.ctx.tokens, cases, cosigned: again, saved, jwks: service.ctx.tokens.jwks };
}
