import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type CommandLine, createCommandLine } from "../support/command-line.ts";
import { createTestContext, type TestContext } from "../support/context.ts";
import { type Case, type Genuine, withGenuine } from "./genuine.ts";
import { rewritten, tamperedOf } from "./tampered.ts";

/**
 * `holdfast receipt verify`, and the program of a stranger beside this file, which was written from the page on receipts alone.
 * `bun run receipts` asks the other one, in Python, and `bun run browser` asks this one in Chromium.
 */

type Verify = (receipt: string, jwks: string, witnesses: readonly string[]) => Promise<void>;
const { verify }: { verify: Verify } = await import(join(import.meta.dir, "verify.js"));

let genuine: Genuine;
let tampered: readonly Case[];
let ctx: TestContext;
let cli: CommandLine;
let folder: string;
beforeAll(async () => {
  await withGenuine(async (made) => {
    genuine = made;
    tampered = await tamperedOf(made);
  });
  ctx = createTestContext();
  cli = createCommandLine(ctx);
  folder = mkdtempSync(join(tmpdir(), "holdfast-receipts-"));
});
afterAll(async () => {
  await ctx?.close();
  rmSync(folder, { recursive: true, force: true });
});

/** What is wrong, as the stranger says; null where the receipt holds. */
const problemOf = ({ receipt, jwks, witnesses }: Case): Promise<string | null> =>
  verify(receipt, jwks, witnesses).then(
    () => null,
    (problem: Error) => problem.message,
  );

async function verifiedByUs({ receipt, jwks, witnesses }: Case): Promise<{ code: number; out: string }> {
  const [file, keys] = [join(folder, "receipt.json"), join(folder, "jwks.json")];
  writeFileSync(file, receipt);
  writeFileSync(keys, jwks);
  const asked = witnesses.length === 0 ? [] : ["--witness", ...witnesses];
  return cli.run("receipt", "verify", file, "--jwks", keys, ...asked);
}

describe("what the instance answered", () => {
  test("is accepted by both, whatever the kind", async () => {
    for (const one of genuine.cases) {
      expect([one.name, await problemOf(one)]).toEqual([one.name, null]);
      const { code, out } = await verifiedByUs(one);
      expect([one.name, code, out]).toEqual([one.name, 0, expect.stringContaining("The receipt holds")]);
    }
  });

  test("has all that there is", () => {
    const receipts = genuine.cases.map(({ receipt }) => JSON.parse(receipt));
    const all = (of: (receipt: (typeof receipts)[number]) => unknown) => new Set(receipts.map(of));
    expect(all(({ warrant }) => warrant.state).size).toBe(4);
    expect(all(({ mode }) => mode)).toEqual(new Set(["live", "sandbox"]));
    expect(all(({ warrant, anchor }) => `${warrant.spec === null} ${anchor === null}`).size).toBe(3);
    expect(all(({ checks }) => checks.length)).toEqual(new Set([0, 1]));
    expect(all(({ signature }) => signature.split(".")[0]).size).toBe(2);
    expect(genuine.cases.some(({ witnesses }) => witnesses.length > 0)).toBe(true);
  });
});

const page = readFileSync(join(import.meta.dir, "../../src/docs/receipts.md"), "utf8");

test("the page on receipts names every field of a receipt, and no other", () => {
  const [block = ""] = /\{ object: "receipt"[^`]+/.exec(page) ?? [];
  const [payload = ""] = /`payload` is `\{[^}]+\}`.+/.exec(page) ?? [];
  const namesIn = (text: string) =>
    new Set(text.replaceAll(/"[^"]*"|\bnull\b|\bhash\b/g, "").match(/[a-z_]+/g));
  const keysOf = (...objects: readonly object[]) => new Set(objects.flatMap((one) => Object.keys(one)));
  const receipt = JSON.parse(genuine.cosigned.receipt);
  const { warrant, checks, trace, anchor } = receipt;
  const parts = [receipt, warrant, checks[0], checks[0].details[0], trace[0], trace[0].actor, anchor];
  expect(namesIn(block)).toEqual(keysOf(...parts));
  const named = new Set(
    [...payload.matchAll(/`(?:\{ )?([a-z_, ]+)(?: \})?`/g)].flatMap(([, names = ""]) => names.split(", ")),
  );
  named.delete("payload");
  expect(named).toEqual(keysOf(...trace.map((entry: { payload: object }) => entry.payload)));
});

test("the page on receipts names what is in a saved page, and nothing else", () => {
  const [, saved = ""] = page.split("## A saved page\n");
  const [, names = ""] = /`<script[^`]+`: `\{ ([^}]+) \}`/.exec(saved) ?? [];
  const [, block = "{}"] =
    /<script type="application\/json" id="receipt-data">([^<]*)</.exec(genuine.saved) ?? [];
  const data = JSON.parse(block);
  expect(names.split(", ").map((name) => JSON.parse(name))).toEqual(Object.keys(data));
  const { receipt, jwks, witnesses } = data;
  expect(receipt).toEqual(JSON.parse(genuine.cosigned.receipt));
  expect(jwks).toEqual(JSON.parse(genuine.cosigned.jwks));
  expect(witnesses).toEqual(genuine.cosigned.witnesses);
});

describe("what was altered", () => {
  test("is refused by both", async () => {
    expect(tampered.length).toBeGreaterThan(60);
    for (const one of tampered) {
      if ((await problemOf(one)) === null) throw new Error(`the stranger accepts ${one.name}`);
      const { code, out } = await verifiedByUs(one);
      expect([one.name, code, out]).toEqual([
        one.name,
        1,
        expect.stringContaining("The receipt does not hold"),
      ]);
    }
  });

  test("by the instance itself, with its log, is refused by whoever asks for the witness alone", async () => {
    const one = await rewritten(genuine);
    expect([await problemOf(one), (await verifiedByUs(one)).code]).toEqual([null, 0]);
    const asked = { ...one, witnesses: genuine.cosigned.witnesses };
    expect([await problemOf(asked), (await verifiedByUs(asked)).code]).toEqual([
      "a witness has not signed the checkpoint",
      1,
    ]);
  });
});
