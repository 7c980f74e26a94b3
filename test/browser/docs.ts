/** `bun run browser`: the documentation in headless Chromium, on a wide screen and a phone, with its script and without. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import { PAGES } from "../../src/docs/pages.ts";
import { launchChromium } from "../support/chromium.ts";
import { type Service, startTestServer } from "../support/server.ts";

const STEP_MS = 10_000;
const TEST_MS = 120_000;
const WIDE: BrowserContextOptions = { viewport: { width: 1280, height: 900 } };
const PHONE: BrowserContextOptions = { viewport: { width: 390, height: 844 }, colorScheme: "dark" };
const PATHS = ["/docs", "/docs/api-reference", ...PAGES.map(({ path }) => path)];

type Described = {
  readonly tags: readonly { readonly name: string }[];
  readonly paths: Readonly<Record<string, unknown>>;
};

let service: Service;
let browser: Browser;
let base: string;
beforeAll(async () => {
  service = await startTestServer();
  base = `http://localhost:${new URL(service.url).port}`;
  browser = await launchChromium();
}, TEST_MS);
afterAll(async () => {
  await browser?.close();
  await service?.close();
});

/** A page of a browser, and whatever went wrong in it: errors, what its policy forbade, and requests to other hosts. */
async function open(options: BrowserContextOptions): Promise<{ page: Page; problems: string[] }> {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  page.setDefaultTimeout(STEP_MS);
  const problems: string[] = [];
  page.on("pageerror", (error) => problems.push(error.message));
  page.on("request", (request) => {
    if (!request.url().startsWith(`${base}/`)) problems.push(`asked ${request.url()}`);
  });
  page.on("console", (message) => {
    // A browser asks every host for an icon.
    if (message.type() === "error" && !message.location().url.endsWith("/favicon.ico"))
      problems.push(message.text());
  });
  return { page, problems };
}

for (const [name, options] of [
  ["a wide screen", WIDE],
  ["a phone", PHONE],
] as const)
  test(
    `every page fits ${name}, asks no other host, and breaks no rule of its policy`,
    async () => {
      const { page, problems } = await open(options);
      for (const path of PATHS) {
        await page.goto(`${base}${path}`);
        const [width, room] = (await page.evaluate(
          "[document.documentElement.scrollWidth, innerWidth]",
        )) as number[];
        expect([path, width! <= room!]).toEqual([path, true]);
        expect(await page.isVisible("#contents a")).toBe(true);
      }
      expect(problems).toEqual([]);
    },
    TEST_MS,
  );

for (const [name, options] of [
  ["a wide screen", WIDE],
  ["a phone", PHONE],
] as const)
  test(
    `Scalar shows every group of requests on ${name}, asks no other host, and breaks no rule of its policy`,
    async () => {
      const { page, problems } = await open(options);
      await page.goto(`${base}/docs/api-reference`);
      await page.click('a[href="/docs/api-reference/interactive"]');
      const { tags, paths } = (await (await fetch(`${base}/openapi.json`)).json()) as Described;
      for (const { name: tag } of tags) {
        const slug = tag.toLowerCase().replaceAll(" ", "-");
        await page.locator(`[id$="/tag/${slug}"]`).first().waitFor({ state: "attached" });
      }
      const asked = Object.keys(paths)[0] ?? "";
      await page.goto(`${base}/docs/api-reference/interactive#tag/warrants/POST${asked}`);
      await page.reload();
      await page.getByRole("heading", { name: "Open a warrant" }).first().waitFor();
      // It is told to send nothing: where a key could be typed in, the browser would keep it.
      expect(await page.getByRole("button", { name: "Test Request" }).count()).toBe(0);
      expect(problems).toEqual([]);
    },
    TEST_MS,
  );

test(
  "an error's doc_url shows its section",
  async () => {
    const { page } = await open(WIDE);
    const { error } = (await (await fetch(`${base}/v1/warrants`)).json()) as { error: { doc_url: string } };
    await page.goto(error.doc_url);
    expect(await page.textContent(":target")).toBe("not_authenticated");
    expect(
      await page.evaluate("document.querySelector(':target').getBoundingClientRect().top < innerHeight"),
    ).toBe(true);
  },
  TEST_MS,
);

test(
  "the search finds while one types, and by a form where scripts do not run",
  async () => {
    const { page, problems } = await open(WIDE);
    await page.goto(`${base}/docs/start`);
    await page.keyboard.press("/");
    await page.keyboard.type("insufficient_f");
    await page.click('#found a[href="/docs/api-reference/errors#insufficient_funds"]');
    expect(await page.textContent(":target")).toBe("insufficient_funds");
    expect(problems).toEqual([]);

    const without = await open({ ...PHONE, javaScriptEnabled: false });
    await without.page.goto(`${base}/docs/start`);
    await without.page.fill("#search input", "redeliver");
    await without.page.press("#search input", "Enter");
    await without.page.click('#results a[href="/docs/commands#holdfast-webhooks-redeliver"]');
    expect(await without.page.textContent("h1")).toBe("The command line");
    expect(without.problems).toEqual([]);
  },
  TEST_MS,
);
