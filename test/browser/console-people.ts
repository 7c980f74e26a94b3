/**
 * `bun run browser`: the first run, people, settings and the audit log in headless Chromium, with a virtual passkey. axe looks at
 * each page, light and dark, and finds nothing serious.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { Page } from "playwright-core";
import { offerSignIn } from "../../src/services/auth/sign-in-link.ts";
import { expectCareOf, expectCareOn, openChromium, WALK_MS } from "../support/chromium.ts";
import { type Service, startTestServer } from "../support/server.ts";

const PASSWORD = "velvet harbour ginger notion";
const OTHER_PASSWORD = "copper lantern walnut drift";

let service: Service;
let chromium: Awaited<ReturnType<typeof openChromium>>;
let page: Page;
let base: string;
const problems: string[] = [];
beforeAll(async () => {
  service = await startTestServer();
  base = `http://localhost:${new URL(service.url).port}`;
  chromium = await openChromium(problems);
  page = await chromium.openPage();
}, WALK_MS);
afterAll(async () => {
  await chromium?.close();
  await service?.close();
});

const heading = (name: string) => page.getByRole("heading", { name }).waitFor();
/** As `care`, of the answer to a form. The page has its size and colours afterwards. */
async function careHere(at: Page, name: string): Promise<void> {
  await expectCareOn(at, `/${name}`);
  await at.emulateMedia({ colorScheme: null });
  await at.setViewportSize({ width: 1280, height: 720 });
}
const care = (path: string) => expectCareOf(page, base, path);

test(
  "the first run: the link makes organisation and owner, a passkey is added, and a first warrant is paid",
  async () => {
    await page.goto(base);
    await heading("Holdfast is not set up yet");
    await careHere(page, "not-set-up");
    await care("/console/set-up");
    await page.goto(service.setUpUrl!);
    // The code is filled in and hidden, and goes from the address bar.
    expect(page.url()).toBe(`${base}/console/set-up`);
    expect(await page.locator("#token").isVisible()).toBe(false);
    await page.fill("#organisation", "Acme Ltd.");
    await page.fill("#name", "Ada Lovelace");
    await page.fill("#email", "ada@example.com");
    await page.fill("#password", "ada lovelace acme");
    await page.click("button:has-text('Make the organisation')");
    await page.locator("#password-problem").waitFor();
    expect(await page.locator("#token").isVisible()).toBe(false);
    await careHere(page, "set-up-refused");
    await page.fill("#password", PASSWORD);
    await page.click("button:has-text('Make the organisation')");
    await heading("Welcome, Ada Lovelace");
    await care("/console/welcome");
    await page.fill("#passkey_name", "Laptop");
    await page.fill("#passkey_password", PASSWORD);
    // The page may show the passkey before it is loaded anew.
    await Promise.all([page.waitForEvent("load"), page.click("button:has-text('Add a passkey')")]);
    await page.getByText("You have a passkey.").waitFor();
    await page.click("text=Make the agent, and try it");
    await heading("It works Released");
    expect(await page.inputValue("#secret")).toMatch(/^hf_test_/);
    await careHere(page, "first-steps-done");
    await page.click("a:has-text('The warrant')");
    await page.getByText("Released").first().waitFor();
    expect(await page.locator("body").textContent()).toContain("8.40");
  },
  WALK_MS,
);

test(
  "somebody is invited by a link, chooses a password, signs in, and is demoted",
  async () => {
    await page.goto(`${base}/console/people`);
    await page.getByText("(you)").waitFor();
    await page.click("a:has-text('Invite somebody')");
    await page.fill("#name", "Grace Hopper");
    await page.fill("#email", "grace@example.com");
    await page.selectOption("#role", "operator");
    await page.click("text=Make the invitation");
    await heading("Grace Hopper is invited");
    await careHere(page, "invited");
    const link = await page.inputValue("#secret");
    const theirs = await chromium.openPage();
    await theirs.goto(link);
    await theirs.fill("[name=new_password]", OTHER_PASSWORD);
    await theirs.click("button:has-text('Set the password')");
    await theirs.getByText("Your password is set.").waitFor();
    await theirs.click("a:has-text('Sign in')");
    await theirs.fill("#email", "grace@example.com");
    await theirs.fill("#password", OTHER_PASSWORD);
    await theirs.click("button[type=submit]");
    await theirs.getByRole("heading", { name: "Overview" }).waitFor();
    expect(await theirs.locator("nav").first().textContent()).not.toContain("People");
    await theirs.goto(`${base}/console/warrants/new`);
    await theirs.getByRole("heading", { name: "Open a warrant" }).waitFor();

    await page.goto(`${base}/console/people`);
    await care("/console/people");
    await page.click("text=Grace Hopper");
    await heading("Grace Hopper");
    await care(new URL(page.url()).pathname);
    await page.selectOption("#role", "viewer");
    await page.click("button:has-text('Change the role')");
    await page.getByText("The role is changed.").waitFor();
    await theirs.reload();
    await theirs.getByRole("heading", { name: "You may not do that" }).waitFor();

    // The confirmation opens over the page, and says what ends.
    await page.click("a:has-text('Remove this person')");
    const dialog = page.getByRole("dialog");
    await dialog.getByText("Sign-ins that end now: 1.").waitFor();
    await dialog.locator("[data-cancel]").click();
    await page.click("button:has-text('Sign out everywhere')");
    await page.getByText("Those sign-ins are ended.").waitFor();
    await theirs.goto(`${base}/console`);
    await theirs.getByRole("heading", { name: "Sign in" }).waitFor();
    await theirs.context().close();
  },
  WALK_MS,
);

test(
  "the audit log says it in words, narrows, and shows what changed",
  async () => {
    await page.goto(`${base}/console/audit-log`);
    await page.getByText("changed the role of").waitFor();
    await care("/console/audit-log");
    await page.selectOption("#what", "organisation");
    await page.getByText("changed the role of").waitFor({ state: "detached" });
    await page.getByText("made the organisation").waitFor();
    expect(new URL(page.url()).searchParams.get("what")).toBe("organisation");
    await page.click("details:has-text('organisation.created') summary");
    await page.getByText("Acme Ltd.").last().waitFor();
    await careHere(page, "audit-log-open");
  },
  WALK_MS,
);

test(
  "settings: the kill switch says how much money, the threshold is set, and the name is changed",
  async () => {
    await page.goto(`${base}/console/settings`);
    await page.getByText("This instance").waitFor();
    await care("/console/settings");
    await care("/console/settings/kill-switch/on");
    await page.click("a:has-text('Turn it on')");
    const dialog = page.getByRole("dialog");
    await dialog.getByText("91.60 USDC").waitFor();
    await dialog.getByRole("button", { name: "Turn it on" }).click();
    await page.getByText("The kill switch is on: no new warrant opens.").first().waitFor();
    await page.click("a:has-text('Turn it off')");
    await dialog.getByRole("button", { name: "Turn it off" }).click();
    await page.getByText("The kill switch is off").waitFor();
    await page.fill("#amount", "250");
    await page.click("button:has-text('Set the threshold')");
    await page.getByText("250.00 USDC").first().waitFor();
    await page.goto(`${base}/console/account`);
    await care("/console/account");
    await page.fill("#name", "Ada King");
    await page.click("button:has-text('Change the name')");
    await page.getByText("Your name is changed.").waitFor();
    await page.getByRole("link", { name: "Remove" }).click();
    await dialog.getByText("It is your last one").waitFor();
    await dialog.locator("#password").fill(PASSWORD);
    await dialog.getByRole("button", { name: "Remove it" }).click();
    await page.getByText("The passkey is removed.").waitFor();
    await page.click("button:has-text('Sign out everywhere')");
    await heading("Sign in");
  },
  WALK_MS,
);

test(
  "a demo's link signs in by itself, once",
  async () => {
    const user = await service.ctx.store.read(({ users }) => users.byEmail("ada@example.com"));
    const link = offerSignIn(service.ctx, user!.id);
    await page.goto(link);
    await heading("Overview");
    const again = await chromium.openPage();
    await again.goto(link);
    await again.getByText("unknown, used or out of date").waitFor();
    await again.goto(`${base}/console/enter`);
    await careHere(again, "enter");
    await again.context().close();
  },
  WALK_MS,
);

test(
  "without a script the first run works too: the code is pasted",
  async () => {
    const second = await startTestServer();
    try {
      const [at = "", code = ""] = second.setUpUrl?.split("#") ?? [];
      const plain = await chromium.openWithoutScript();
      await plain.goto(at);
      await plain.fill("#token", code);
      await plain.fill("#organisation", "Plain");
      await plain.fill("#name", "Bob");
      await plain.fill("#email", "bob@example.com");
      await plain.fill("#password", PASSWORD);
      await plain.click("button:has-text('Make the organisation')");
      await plain.getByRole("heading", { name: "Welcome, Bob" }).waitFor();
      expect(await plain.locator("noscript .notice").isVisible()).toBe(true);
      await plain.click("text=Make the agent, and try it");
      await plain.getByText("It works").waitFor();
      await plain.context().close();
    } finally {
      await second.close();
    }
  },
  WALK_MS,
);

test("no page broke its own policy, and no script failed", () => {
  expect(problems).toEqual([]);
});
