import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sha256 } from "../../src/core/canonical.ts";
import { formatVerifierKey } from "../../src/core/signed-note.ts";
import { anchor } from "../../src/services/log/anchor.ts";
import { type CommandLine, createCommandLine } from "../support/command-line.ts";
import { createSigner, ORIGIN } from "../support/receipts.ts";
import { type Service, startTestServer } from "../support/server.ts";
import { type Source, startSource } from "../support/source.ts";

/** `holdfast receipt verify`, on what `GET /t/:id` and `/.well-known/jwks.json` answered. */

let service: Service;
let source: Source;
let cli: CommandLine;
let folder: string;
let receipt: string;
let jwks: string;
beforeAll(async () => {
  [source, service] = [startSource(), await startTestServer()];
  folder = mkdtempSync(join(tmpdir(), "holdfast-receipt-"));
  cli = createCommandLine(service.ctx);
  const home = await service.organisation();
  const { id } = await service.opened(home, {
    amount: "840000",
    payee: "evil GmbH",
  });
  await service.post(`/v1/warrants/${id}/verify`, { source_url: source.gives("{}") }, { as: home.live.as });
  await anchor(service.ctx);
  receipt = (await service.get(`/t/${id}`)).text;
  jwks = file("jwks.json", (await service.get("/.well-known/jwks.json")).text);
});
afterAll(async () => {
  await service?.close();
  source?.stop();
  rmSync(folder, { recursive: true, force: true });
});

function file(name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

const verify = (text: string, ...options: readonly string[]) =>
  cli.run("receipt", "verify", file("receipt.json", text), "--jwks", jwks, ...options);

describe("a receipt of a running service", () => {
  test("holds, and what it says is printed", async () => {
    const { code, out, err } = await verify(receipt);
    expect([code, err]).toEqual([0, ""]);
    expect(out).toStartWith("The receipt holds; nothing in it was altered.\n");
    const { warrant } = JSON.parse(receipt);
    for (const text of [
      warrant.id,
      "0.84 USDC",
      "evil GmbH",
      "released",
      "100 %",
      warrant.settled_at,
      "those of --jwks",
      "holdfast/ins_",
    ])
      expect(out).toContain(text);
  });

  test("holds as one object for programs, without opening a ledger", async () => {
    const opened = cli.opened.count;
    const { warrant } = JSON.parse(receipt);
    const { kid } = service.ctx.tokens.jwks.keys[0]!;
    const answer = await cli.json("receipt", "verify", file("r.json", receipt), "--jwks", jwks);
    const { id, state, amount, asset, released_bps, payee, settled_at } = warrant;
    expect(answer).toEqual({
      object: "receipt_verification",
      ok: true,
      problems: [],
      keys: "given",
      kid,
      warrant: { id, mode: "live", state, amount, asset, released_bps, payee, settled_at },
      log: expect.stringMatching(/^holdfast\/ins_/),
      cosigned: [],
      unknown_cosigners: [],
      on_chain: null,
    });
    expect(cli.opened.count).toBe(opened);
  });

  test("that was altered does not hold: exit 1, and what does not match", async () => {
    const { code, out, err } = await verify(receipt.replace('"amount":"840000"', '"amount":"840001"'));
    expect([code, err]).toEqual([1, ""]);
    expect(out).toStartWith("The receipt does not hold:\n  - ");
    expect(out).toContain('warrant.amount is "840001", but what was signed says "840000"');
    expect(out).not.toContain("0.84 USDC");
    // What others wrote must not colour, turn or hide what stands around it.
    const turned = await verify(receipt.replace('"asset":"USDC"', '"asset":"\\u202eUSDC\\u009b"'));
    expect([turned.code, turned.out]).toEqual([1, expect.stringContaining('is "\\u202eUSDC\\u009b"')]);
    const json = await verify("[]", "--json");
    expect([json.code, JSON.parse(json.out)]).toMatchObject([1, { ok: false, warrant: null, keys: "given" }]);
  });

  test("does not hold without keys, or with those of another instance", async () => {
    const path = file("alone.json", receipt);
    const alone = await cli.run("receipt", "verify", path);
    expect([alone.code, alone.out]).toEqual([
      1,
      "The receipt does not hold:\n  - no keys were given, so no signature was verified\n",
    ]);
    const others = file("others.json", JSON.stringify(createSigner().jwks));
    const other = await cli.run("receipt", "verify", path, "--jwks", others);
    expect([other.code, other.out]).toEqual([1, expect.stringContaining("is not among the keys")]);
  });
});

test("a name in a file begins no line of what is printed", async () => {
  const given = JSON.parse(receipt);
  given.trace[0].payload["a\nThe receipt holds"] = 1;
  const { code, out } = await verify(JSON.stringify(given));
  expect([code, out]).not.toEqual([0, expect.stringMatching(/^The receipt holds/m)]);
  expect(out).not.toMatch(/^The receipt holds/m);
});

test("a witness that is named must have cosigned", async () => {
  const signer = createSigner();
  const keys = file("signer.json", JSON.stringify(signer.jwks));
  const cosigned = file("cosigned.json", JSON.stringify(await signer.anchor(JSON.parse(receipt))));
  const run = (...options: readonly string[]) =>
    cli.run("receipt", "verify", cosigned, "--jwks", keys, ...options);
  const witness = formatVerifierKey(signer.witness);
  expect((await run("--witness", witness)).out).toContain("witness.example at 2030-03-17T17:46:40.000Z");
  expect((await run()).out).toMatch(
    /cosigned by +nobody who was asked for\n +not verified +a line by witness\.example\n/,
  );
  const stranger = formatVerifierKey(createSigner().witness);
  const { code, out } = await run("--witness", witness, stranger);
  expect([code, out]).toEqual([1, expect.stringContaining("no cosignature of the witness")]);
});

test("a file is what its bytes are", async () => {
  const marked = `\ufeff${receipt}`;
  expect((await verify(marked)).code).toBe(0);
  const { text: page } = await service.get(`/t/${JSON.parse(receipt).warrant.id}/receipt.html`);
  expect((await verify(page)).code).toBe(0);
  const altered = await verify(`\ufeff${page}`);
  expect([altered.code, altered.out]).toEqual([1, expect.stringContaining("the page was altered")]);

  const path = join(folder, "latin.json");
  writeFileSync(path, Buffer.from(receipt.replace("evil GmbH", "\u00e9vil"), "latin1"));
  const { code, err } = await cli.run("receipt", "verify", path, "--jwks", jwks);
  expect([code, err]).toEqual([1, expect.stringContaining("latin.json is not text in UTF-8")]);
});

test("a receipt that names a block says what the chain must have there, and that it was not asked", async () => {
  const signer = createSigner();
  const keys = file("signer.json", JSON.stringify(signer.jwks));
  const anchored = await signer.anchor(JSON.parse(receipt), { chainRef: "eip155:8453#1234" });
  const path = file("on-chain.json", JSON.stringify(anchored));
  const { out } = await cli.run("receipt", "verify", path, "--jwks", keys);
  expect(out).toMatch(/on a chain +eip155:8453, block 1234; not asked\n/);
  const address = `0x${sha256(ORIGIN).slice(24)}`;
  const [text, lines = ""] = (anchored.anchor.checkpoint as string).split("\n\n");
  const [ofLog] = lines.split("\n");
  expect(out).toContain(
    `a transaction to ${address} whose input data, as text, is:\n\n${text}\n\n${ofLog}\n`,
  );
  expect(out).not.toContain("\u2014 witness.example");
  const { on_chain } = await cli.json("receipt", "verify", path, "--jwks", keys);
  expect(on_chain).toEqual({
    ...{ network: "eip155:8453", block: 1_234, address },
    text: `${text}\n\n${ofLog}\n`,
  });
});

test("files and keys that cannot be read are refused", async () => {
  const path = file("good.json", receipt);
  for (const [args, message] of [
    [["none.json"], "<file>: cannot read none.json (ENOENT)"],
    [[path, "--jwks", "none.json"], "--jwks: cannot read none.json (ENOENT)"],
    [[path, "--jwks", file("text", "x")], `--jwks: ${join(folder, "text")} is not JSON`],
    [[path, "--witness", "x"], "--witness: must be the verifier key of a witness"],
  ] as const) {
    const { code, out, err } = await cli.run("receipt", "verify", ...args, "--json");
    expect([code, out, JSON.parse(err).error.message]).toEqual([1, "", expect.stringContaining(message)]);
  }
});
