import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readConfig } from "../../src/config.ts";
import { isRefusal } from "../../src/core/errors.ts";
import { NO_PROGRESS } from "../../src/core/progress.ts";
import { type DemoSettings, type Narrator, runDemo } from "../../src/demo/demo.ts";
import { inWords } from "../../src/demo/narrate.ts";
import { createPaint } from "../../src/demo/paint.ts";
import { inJson } from "../../src/demo/record.ts";
import { FUNDS, JUDGEMENT, PURCHASE, SCENES } from "../../src/demo/scenes.ts";
import type { ReceiptBody } from "../../src/demo/story.ts";
import { must } from "../support/stage.ts";

const root = mkdtempSync(join(tmpdir(), "holdfast-demo-test-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));

type Print = (text: string) => void;
const inPlainWords = (print: Print) => inWords({ paint: createPaint(false), print });
const inColour = (print: Print) => inWords({ paint: createPaint(true), print });

type RunSettings = Partial<Omit<DemoSettings, "narrator" | "untilStopped">> & {
  readonly narrate?: (print: Print) => Narrator;
  /** What happens while the demo serves, after it has printed its lines. */
  readonly meanwhile?: (lines: readonly string[]) => Promise<void>;
};

/** Runs the demo on a free port, and answers its lines and what it returned. */
async function run({ narrate = inPlainWords, meanwhile, ...settings }: RunSettings = {}) {
  const lines: string[] = [];
  const steps: string[] = [];
  const narrator = narrate((text) => void lines.push(...text.split("\n")));
  const played = Promise.withResolvers<void>();
  const refused = await runDemo({
    config: must(readConfig({ PORT: "0" }, {})),
    data: join(root, "data"),
    keepServing: meanwhile !== undefined,
    narrator: {
      ...narrator,
      played(...story) {
        narrator.played(...story);
        played.resolve();
      },
    },
    startProgress: (step) => {
      steps.push(step);
      return NO_PROGRESS;
    },
    logTo: () => {},
    untilStopped: () => played.promise.then(() => meanwhile?.(lines)),
    ...settings,
  });
  return { refused, steps, lines, text: lines.join("\n") };
}

describe("the tour", () => {
  let tour: Awaited<ReturnType<typeof run>>;
  beforeAll(async () => {
    tour = await run();
  });

  test("ends well, and says that it is a sandbox and where the data is", () => {
    expect(tour.refused).toBeNull();
    expect(tour.lines[0]).toContain("SANDBOX");
    expect(tour.text).toContain(join(root, "data"));
  });

  test("prints every state, clause, reason and amount", () => {
    for (const { state, codes } of SCENES) {
      expect(tour.text).toContain(`${state.toUpperCase()}: `);
      for (const code of codes) if (code !== null) expect(tour.text).toContain(code);
    }
    for (const said of [
      "✓ http.status",
      "✗ http.status",
      "saw 500",
      'band "usable"',
      "user_session_required",
    ])
      expect(tour.text).toContain(said);
    expect(tour.text).toMatch(/before +100\.00 USDC +0\.00 USDC +0\.00 USDC/);
    expect(tour.text).toMatch(/the owner decides +79\.00 USDC +0\.00 USDC +21\.00 USDC/);
    expect(tour.text.match(/\/t\/wrt_/g)).toHaveLength(SCENES.length + 1);
  });

  test("prints the purchase: the quote, the voucher, the clauses and what was paid", () => {
    const from = tour.lines.findIndex((line) => line.includes("(x402)"));
    const until = tour.lines.findIndex((line) => line.includes("What happened to the money"));
    const purchase = tour.lines.slice(from, until).join("\n");
    for (const said of [
      "POST /v1/x402/pay",
      "2.00 USDC at most",
      "402: the seller asks 1.50 USDC for northwind-weather",
      "HELD: 1.50 USDC",
      "a signed voucher for 1.50 USDC",
      "/.well-known/jwks.json",
      "200: the seller delivers",
      "✓ data.freshness",
      "4 of 4 passed",
      "RELEASED: northwind-weather gets 1.50 USDC",
    ])
      expect(purchase).toContain(said);
    expect(tour.text).toMatch(/paid: released +77\.50 USDC +0\.00 USDC +22\.50 USDC/);
  });

  test("has no colour unless it was asked for, and fits a terminal", () => {
    expect(tour.text).not.toContain("\u001b");
    expect(tour.lines.filter((line) => line.length > 100)).toEqual([]);
  });

  test("works again: in its own folder, where its port is taken, and in colour", async () => {
    const other = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => new Response() });
    try {
      const config = must(readConfig({ PORT: String(other.port) }, {}));
      const { refused, text } = await run({ config, narrate: inColour });
      expect(refused).toBeNull();
      for (const said of ["ada+2@", `since port ${other.port} is taken`, "\u001b["])
        expect(text).toContain(said);
    } finally {
      await other.stop(true);
    }
  });

  test("refuses a folder that no demo made", async () => {
    const folder = mkdtempSync(join(root, "real-"));
    writeFileSync(join(folder, "holdfast.db"), "");
    const { refused, text } = await run({ data: folder });
    expect(isRefusal(refused) && refused.refused).toBe("validation_failed");
    expect(text).toBe("");
    expect(readdirSync(folder)).toEqual(["holdfast.db"]);
  });
});

test.skipIf(!Bun.which("curl"))("the lines to copy work as they stand, in order", async () => {
  const answers: Record<string, unknown>[] = [];
  const { refused } = await run({
    async meanwhile(lines) {
      for (const line of lines.filter((candidate) => candidate.startsWith("curl "))) {
        const shell = Bun.spawn(["sh", "-c", line], { stdout: "pipe", stderr: "inherit" });
        answers.push(JSON.parse(await shell.stdout.text()));
      }
    },
  });
  expect(refused).toBeNull();
  expect(answers.map((answer) => answer.state ?? answer.object ?? answer.reason_codes)).toEqual([
    ...["held", "held", "escalated", "auth_session", "released", "list", "receipt"],
    ...["released", "list"],
    ["value_mismatch"],
  ]);
});

describe("the tour as one object", () => {
  const digits = (balance: Record<"available" | "held" | "paid", bigint>) =>
    Object.fromEntries(Object.entries(balance).map(([name, amount]) => [name, `${amount}`]));

  test("has every warrant, the balance after each step, and no secret after the server has ended", async () => {
    const { refused, lines, text } = await run({ narrate: inJson });
    expect(refused).toBeNull();
    expect(lines).toHaveLength(1);
    const record = JSON.parse(text);
    expect(record).toMatchObject({
      ...{ object: "demo", mode: "sandbox", data_folder: join(root, "data"), yours: null },
      ...{
        organisation: { object: "organisation", name: "Oslo Picnics" },
        audit: { ok: true, problems: [] },
      },
    });
    expect(text).not.toContain("hf_test_");
    expect(record.warrants).toMatchObject(
      SCENES.map(({ deliverable, amount, state, codes }) => ({
        ...{ deliverable, amount: `${amount}`, asset: "USDC" },
        state: state === "escalated" ? JUDGEMENT.state : state,
        passed: codes.every((code) => code === null),
        score: (codes.filter((code) => code === null).length * 10_000) / codes.length,
        reason_codes: [...new Set(codes.filter((code) => code !== null))],
      })),
    );
    const { warrant_id, voucher, url } = record.purchase;
    expect(record.purchase).toMatchObject({
      ...{ max_amount: `${PURCHASE.maxAmount}`, quoted: PURCHASE.terms, state: "released", status: 200 },
      ...{ paid: true, released_bps: 10_000, score: 10_000, passed: true, reason_codes: [] },
      ...{ outcome: "release", receipt_url: `${record.url}/t/${warrant_id}` },
    });
    expect(voucher).toMatchObject({ ...PURCHASE.terms, mode: "sandbox", warrant: warrant_id, url });
    expect(record.balances).toEqual([
      { step: "before", ...digits({ available: FUNDS, held: 0n, paid: 0n }) },
      ...SCENES.map(({ deliverable, state, balance }) => ({
        step: `${deliverable}: ${state}`,
        ...digits(balance),
      })),
      { step: "stale: the owner decides", ...digits(JUDGEMENT.balance) },
      { step: "paid: released", ...digits(PURCHASE.balance) },
    ]);
  });

  test("agrees with the service, which goes on, and has the credentials to try it", async () => {
    let compared = 0;
    const { refused, lines } = await run({
      narrate: inJson,
      async meanwhile(printed) {
        const { url, warrants, yours } = JSON.parse(printed.join("\n"));
        const read = async (path: string) => {
          const headers = { Authorization: `Bearer ${yours.api_key}` };
          return (await fetch(`${url}/v1/warrants/${path}`, { headers })).json();
        };
        for (const {
          deliverable,
          receipt_url,
          score,
          passed,
          reason_codes,
          outcome,
          ...warrant
        } of warrants) {
          const receipt = (await (await fetch(receipt_url)).json()) as ReceiptBody;
          expect(receipt.warrant).toMatchObject(warrant);
          expect(receipt.checks).toMatchObject([{ score, passed, reason_codes, outcome }]);
          expect(await read(warrant.id)).toMatchObject(warrant);
          expect(receipt.checks[0]?.source_origin).toBe(new URL(yours.seller_url).origin);
          compared += 1;
        }
        expect(await read(yours.warrant.id)).toEqual(yours.warrant);
        const session = await fetch(`${url}/auth/session`, {
          method: "POST",
          headers: { "Content-Type": "application/json" },
          body: JSON.stringify({ ...yours.owner, mode: "sandbox" }),
        });
        expect(session.status).toBe(201);
      },
    });
    expect([refused, compared, lines.length]).toEqual([null, SCENES.length, 1]);
  });

  test("is not printed where the demo is refused", async () => {
    const folder = mkdtempSync(join(root, "real-"));
    writeFileSync(join(folder, "holdfast.db"), "");
    const { refused, lines } = await run({ data: folder, narrate: inJson });
    expect([isRefusal(refused), lines]).toEqual([true, []]);
  });
});
