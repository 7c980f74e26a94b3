/** `bun run browser`: the receipts of the tests, in headless Chromium, by a program of a stranger, with WebCrypto alone. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { type Case, withGenuine } from "../receipts/genuine.ts";
import { tamperedOf } from "../receipts/tampered.ts";
import { launchChromium } from "../support/chromium.ts";

const PROGRAM = join(import.meta.dir, "../receipts");
const TEST_MS = 60_000;

let browser: Browser;
let page: Page;
let good: readonly Case[];
let bad: readonly Case[];
// WebCrypto is there on pages of https and of this machine alone.
const server = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  fetch: ({ url }) =>
    url.endsWith(".js")
      ? new Response(Bun.file(join(PROGRAM, new URL(url).pathname)), {
          headers: { "Content-Type": "text/javascript" },
        })
      : new Response("<!doctype html>", { headers: { "Content-Type": "text/html" } }),
});
beforeAll(async () => {
  await withGenuine(async (genuine) => {
    [good, bad] = [genuine.cases, await tamperedOf(genuine)];
  });
  browser = await launchChromium();
  page = await browser.newPage();
  await page.goto(server.url.href);
}, TEST_MS);
afterAll(async () => {
  await browser?.close();
  await server.stop(true);
}, TEST_MS);

/** What it says of each, by the name of the case. */
const said = (cases: readonly Case[]): Promise<Record<string, string>> =>
  page.evaluate(`(async () => {
    const { verify } = await import("/verify.js");
    const found = {};
    for (const { name, receipt, jwks, witnesses } of ${JSON.stringify(cases)})
      found[name] = await verify(receipt, jwks, witnesses).then(() => "holds", () => "does not hold");
    return found;
  })()`);

test(
  "what the instance answered is accepted",
  async () => {
    expect(await said(good)).toEqual(Object.fromEntries(good.map(({ name }) => [name, "holds"])));
  },
  TEST_MS,
);

test(
  "what was altered is refused",
  async () => {
    expect(await said(bad)).toEqual(Object.fromEntries(bad.map(({ name }) => [name, "does not hold"])));
  },
  TEST_MS,
);
