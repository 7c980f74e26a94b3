/** `bun run browser`: the page of a receipt in headless Chromium, as it is served and as a saved file without a network. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { receiptPages } from "../../src/console/receipt/page.ts";
import { formatVerifierKey } from "../../src/core/signed-note.ts";
import { anchor } from "../../src/services/log/anchor.ts";
import { launchChromium } from "../support/chromium.ts";
import { HOSTILE_PAYEE, HOSTILE_PAYEE_SHOWN, startHostile } from "../support/hostile-receipt.ts";
import { createSigner } from "../support/receipts.ts";
import { type Service, startTestServer } from "../support/server.ts";
import { type Source, startSource } from "../support/source.ts";

const STEP_MS = 10_000;
const TEST_MS = 60_000;
const HOUR_MS = 3_600_000;

let service: Service;
let source: Source;
let browser: Browser;
let base: string;
let folder: string;
let id: string;
beforeAll(async () => {
  [source, service] = [startSource(), await startTestServer()];
  folder = mkdtempSync(join(tmpdir(), "holdfast-saved-"));
  base = `http://localhost:${new URL(service.url).port}`;
  const home = await service.organisation();
  const { as } = home.sandbox;
  const spec = { clauses: [{ kind: "json.jsonpath", path: "$.a", equals: HOSTILE_PAYEE }] };
  ({ id } = await service.opened(home, { payee: HOSTILE_PAYEE, spec }, { as }));
  await service.post(`/v1/warrants/${id}/verify`, { source_url: source.gives({ a: HOSTILE_PAYEE }) }, { as });
  await anchor(service.ctx);
  browser = await launchChromium();
}, TEST_MS);
afterAll(async () => {
  await browser?.close();
  await service?.close();
  source?.stop();
  rmSync(folder, { recursive: true, force: true });
}, TEST_MS);

/** A page, and whatever went wrong in it: errors, dialogs and what its policy forbade. */
async function open(url: string, offline = false): Promise<{ page: Page; problems: string[] }> {
  const context = await browser.newContext({
    ...{ offline, viewport: { width: 900, height: 1200 } },
    ...{ timezoneId: "Australia/Brisbane", locale: "en-US" },
  });
  const page = await context.newPage();
  page.setDefaultTimeout(STEP_MS);
  const problems: string[] = [];
  page.on("pageerror", (error) => problems.push(error.message));
  page.on("dialog", (dialog) => {
    problems.push(`a dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on("console", (message) => {
    // A browser asks every host for an icon.
    if (message.type() === "error" && !message.location().url.endsWith("/favicon.ico"))
      problems.push(message.text());
  });
  await page.goto(url);
  return { page, problems };
}

/** Nothing is wider than the page. */
async function expectNarrow(page: Page): Promise<void> {
  const widths = await page.evaluate("[document.documentElement.scrollWidth, innerWidth]");
  expect((widths as number[])[0]).toBeLessThanOrEqual((widths as number[])[1]!);
}

async function verdictOn(page: Page): Promise<string> {
  await page.click("#verify");
  await page.waitForSelector("#verdict li");
  return (await page.textContent("#verdict")) ?? "";
}

test(
  "the served page shows hostile values as text, and verifies in the browser",
  async () => {
    const { page, problems } = await open(`${base}/t/${id}`);
    expect(await page.textContent(".sandbox")).toContain("SANDBOX");
    expect(await page.textContent(".lead bdi")).toBe(HOSTILE_PAYEE_SHOWN);
    expect(await page.$("img")).toBeNull();
    const verdict = await verdictOn(page);
    expect(verdict).toContain("The receipt holds; nothing in it was altered.");
    expect(verdict).toContain("Its settlement is in the log holdfast/ins_");
    await expectNarrow(page);
    const time = page.locator("time").first();
    const [at, hover] = [await time.getAttribute("datetime"), await time.getAttribute("title")];
    expect(hover).toBe(`${at?.slice(0, 10)} ${at?.slice(11, 23)} UTC`);
    const inBrisbane = new Date(Date.parse(at ?? "") + 10 * HOUR_MS);
    expect(await time.textContent()).toMatch(new RegExp(` ${inBrisbane.getUTCDate()}, .*GMT\\+10$`));
    if (process.env.SCREENSHOT) await page.screenshot({ path: process.env.SCREENSHOT, fullPage: true });
    expect(problems).toEqual([]);
  },
  TEST_MS,
);

test(
  "a saved page shows every text as text that others wrote, whatever it is, and verifies",
  async () => {
    const hostile = await startHostile();
    const file = join(folder, "hostile.html");
    writeFileSync(file, (await hostile.service.get(`/t/${hostile.id}/receipt.html`)).text);
    await hostile.service.close();
    const { page, problems } = await open(`file://${file}`, true);
    expect(await page.textContent(".lead bdi")).toBe(HOSTILE_PAYEE_SHOWN);
    const seen = (await page.textContent("main")) ?? "";
    // Written out, since they would turn the line in which they stand.
    expect(seen).toContain("\\u202e\\u2066");
    expect(seen).not.toMatch(/[\u202a-\u202e\u2066-\u2069]/);
    expect(await page.$("img")).toBeNull();
    await expectNarrow(page);
    expect(await verdictOn(page)).toContain("The receipt holds; nothing in it was altered.");
    if (process.env.SCREENSHOT)
      await page.screenshot({ path: process.env.SCREENSHOT.replace(".png", "-hostile.png"), fullPage: true });
    expect(problems).toEqual([]);
  },
  TEST_MS,
);

test(
  "a page verifies the cosignatures of the witnesses whose keys it has",
  async () => {
    const signer = createSigner();
    const receipt = await signer.anchor((await service.get(`/t/${id}`)).body);
    const data = { jwks: signer.jwks, witnesses: [formatVerifierKey(signer.witness)] };
    const verdictOf = async (checkpoint: string, witnesses = data.witnesses): Promise<string> => {
      const anchored = await signer.sign({ ...receipt, anchor: { ...receipt.anchor, checkpoint } });
      const file = join(folder, "cosigned.html");
      writeFileSync(file, receiptPages.saved({ ...data, witnesses, receipt: anchored }));
      return verdictOn((await open(`file://${file}`, true)).page);
    };
    const { checkpoint } = receipt.anchor;
    expect(await verdictOf(checkpoint)).toContain(
      "The witness witness.example has cosigned the checkpoint at 2030",
    );
    expect(await verdictOf(checkpoint, [])).toContain("Not verified, since this page has no key for it");
    const forged = checkpoint.replace(/.{6}\n$/, "AAAA==\n");
    expect(await verdictOf(forged)).toContain("a signature of anchor.checkpoint does not verify");
  },
  TEST_MS,
);

test(
  "Save gives a file that verifies itself without a network, and says what was altered in it",
  async () => {
    const { page } = await open(`${base}/t/${id}`);
    const downloading = page.waitForEvent("download");
    await page.click("#save");
    const path = join(folder, "saved.html");
    await (await downloading).saveAs(path);
    const saved = await open(`file://${path}`, true);
    expect(await verdictOn(saved.page)).toContain("The receipt holds; nothing in it was altered.");
    expect(saved.problems).toEqual([]);

    const altered = join(folder, "altered.html");
    writeFileSync(altered, readFileSync(path, "utf8").replace('"amount":"100"', '"amount":"101"'));
    const wrong = await open(`file://${altered}`, true);
    expect(await verdictOn(wrong.page)).toContain('warrant.amount is "101", but what was signed says "100"');
    expect(wrong.problems).toEqual([]);

    // Only what people read is altered; its data stay as they were signed.
    const text = readFileSync(path, "utf8");
    const [block = ""] = /<script type="application\/json"[^<]*<\/script>/.exec(text) ?? [];
    const lies = [
      text.replace("</bdi></span></h1>", " 9</bdi></span></h1>"),
      text.replace(/title="(\d+) in the/, 'title="9$1 in the'),
      text.replace('title="20', 'title="19'),
      text.replace("<h2>The money</h2>", "<h2>The money</h2><p>Paid twice.</p>"),
      text.replace("<body>", "<body>Paid in full."),
      text.replace('<p class="sandbox">', '<p class="sandbox" hidden>'),
      text.replace(/<title>.*<\/title>/, "<title>Paid</title>"),
      text.replace(/<footer>.*<\/footer>/, ""),
      text.replace(block, `<p id="receipt-data">{}</p>${block}`),
      text.replace(block, block.replaceAll('"sandbox"', '"live"') + block),
    ];
    for (const [index, lie] of lies.entries()) {
      expect([index, lie === text]).toEqual([index, false]);
      const file = join(folder, `lie-${index}.html`);
      writeFileSync(file, lie);
      await wrong.page.goto(`file://${file}`);
      expect([index, await verdictOn(wrong.page)]).toEqual([index, expect.stringContaining("does not hold")]);
    }
  },
  TEST_MS,
);
