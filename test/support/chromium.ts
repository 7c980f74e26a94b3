import { expect } from "bun:test";
import { join } from "node:path";
import axe from "axe-core";
import { type Browser, type BrowserContextOptions, chromium, type Page } from "playwright-core";

/** Headless Chromium for the tests of pages. */

const STEP_MS = 30_000;
/** How long a test of pages may take. */
export const WALK_MS = 240_000;
const LAPTOP = { width: 1280, height: 800 };
export const PHONE = { width: 390, height: 844 };
/** What Chromium says when it shows a page without the transition that leads to it; nothing has failed then. */
const LEFT_OUT = /^Transition was (aborted|skipped)/;
/** Where each page's pictures are put, in both colours and on a phone; nowhere by default. */
const PICTURES = process.env.CONSOLE_PICTURES;

/** Debian's, or the one that is named. */
export const CHROMIUM = process.env.CHROMIUM ?? "/usr/bin/chromium";

export const launchChromium = (): Promise<Browser> =>
  chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox"] });

/** @param problems where what goes wrong in its pages is collected */
export async function openChromium(problems: string[]) {
  const browser = await launchChromium();
  return {
    openPage: (options: BrowserContextOptions = {}) => openPage(browser, problems, options),
    openWithoutScript: () => openWithoutScript(browser),
    close: () => browser.close(),
  };
}

/** Signs in by the form, and waits for the page at `next`. */
export async function signIn(
  at: Page,
  base: string,
  { email, password }: { readonly email: string; readonly password: string },
  next = "/console",
): Promise<void> {
  await at.goto(`${base}/console/sign-in?next=${encodeURIComponent(next)}`);
  await at.fill("#email", email);
  await at.fill("#password", password);
  await at.click("button[type=submit]");
  await at.waitForURL(base + next);
}

async function openWithoutScript(browser: Browser): Promise<Page> {
  const opened = await (await browser.newContext({ javaScriptEnabled: false })).newPage();
  opened.setDefaultTimeout(STEP_MS);
  return opened;
}

/** A page whose authenticator holds passkeys. */
async function openPage(browser: Browser, problems: string[], options: BrowserContextOptions): Promise<Page> {
  const reader = { locale: "en-GB", timezoneId: "Europe/Berlin", viewport: LAPTOP, ...options };
  const opened = await (await browser.newContext(reader)).newPage();
  opened.setDefaultTimeout(STEP_MS);
  opened.on("pageerror", ({ message }) => {
    if (!LEFT_OUT.test(message)) problems.push(`${opened.url()}: ${message}`);
  });
  opened.on("console", (message) => {
    if (message.type() === "error" && message.text().includes("Content Security Policy"))
      problems.push(message.text());
  });
  const cdp = await opened.context().newCDPSession(opened);
  await cdp.send("WebAuthn.enable");
  await cdp.send("WebAuthn.addVirtualAuthenticator", {
    options: {
      ...{ protocol: "ctap2", transport: "internal", hasResidentKey: true, hasUserVerification: true },
      ...{ isUserVerified: true, automaticPresenceSimulation: true },
    },
  });
  return opened;
}

type Finding = {
  readonly id: string;
  readonly impact: string;
  readonly nodes: readonly { readonly html: string }[];
};

/**
 * Expects that axe finds nothing on a page that is more than minor, in both colours; and that it is not too wide on a phone.
 *
 * @param page who is signed in there sees it
 * @param name of its pictures
 */
export async function expectCareOf(page: Page, base: string, path: string, name = path): Promise<void> {
  const looking = await page.context().newPage();
  await looking.goto(base + path);
  await expectCareOn(looking, name);
  await looking.close();
}

/** The same of what a page shows now, such as the answer to a form. Afterwards it has the size of a phone. */
export async function expectCareOn(looking: Page, path: string): Promise<void> {
  for (const colorScheme of ["light", "dark"] as const) {
    await looking.emulateMedia({ colorScheme });
    await looking.evaluate(axe.source);
    const found = (await looking.evaluate(
      "axe.run({ resultTypes: ['violations'] }).then((run) => run.violations)",
    )) as Finding[];
    const serious = found.filter(({ impact }) => impact === "serious" || impact === "critical");
    const said = serious.map(
      ({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 120)).join(" | ")}`,
    );
    expect([path, colorScheme, said]).toEqual([path, colorScheme, []]);
    await keepPicture(looking, path, colorScheme);
  }
  await looking.setViewportSize(PHONE);
  expect([path, await pixelsBesidePage(looking)]).toEqual([path, 0]);
  await looking.emulateMedia({ colorScheme: "light" });
  await keepPicture(looking, path, "phone");
}

/** By how many pixels a page is wider than its window. */
export const pixelsBesidePage = (page: Page): Promise<number> =>
  page.evaluate<number>("document.documentElement.scrollWidth - innerWidth");

async function keepPicture(page: Page, path: string, how: string): Promise<void> {
  if (!PICTURES) return;
  const name = path.replaceAll(/_\w+/g, "").replaceAll("/", "-").slice(1);
  await page.screenshot({ path: join(PICTURES, `${name}-${how}.png`), fullPage: true });
}
