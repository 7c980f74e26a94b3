/**
 * `bun run browser`: a person's own account in headless Chromium, whose virtual authenticator holds the passkeys. `bun test` does
 * not run it, since it needs the browser: the one that CHROMIUM names, else /usr/bin/chromium.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { Browser, CDPSession, Page } from "playwright-core";
import { MACHINE } from "../../src/services/admin/authority.ts";
import { issuePasswordReset } from "../../src/services/admin/password-resets.ts";
import { setSecondFactor } from "../../src/services/admin/switches.ts";
import { launchChromium } from "../support/chromium.ts";
import type { Json } from "../support/client.ts";
import { must, PASSWORD, type TestOrganisation } from "../support/organisations.ts";
import { setThreshold } from "../support/passkeys.ts";
import { type Service, startTestServer } from "../support/server.ts";

const NEW_PASSWORD = "another battery staple";
const STEP_MS = 10_000;
const TEST_MS = 60_000;
const ACCOUNT = "/console/account";

let service: Service;
let browser: Browser;
let home: TestOrganisation;
let base: string;
beforeAll(async () => {
  service = await startTestServer();
  home = await service.organisation();
  base = `http://localhost:${new URL(service.url).port}`;
  browser = await launchChromium();
}, TEST_MS);
afterAll(async () => {
  await browser?.close();
  await service?.close();
});

/** A page in a browser of its own, with an authenticator, and the errors of the page. */
type Desk = {
  readonly page: Page;
  readonly problems: string[];
  /** Whether the authenticator verifies the person, as by a PIN. */
  verifyUser(verified: boolean): Promise<void>;
};

async function openDesk(path: string, origin = base): Promise<Desk> {
  const page = await (await browser.newContext()).newPage();
  page.setDefaultTimeout(STEP_MS);
  const problems: string[] = [];
  page.on("pageerror", (error) => problems.push(error.message));
  page.on("console", (message) => {
    if (message.type() === "error" && message.text().includes("Content Security Policy")) {
      problems.push(message.text());
    }
  });
  const cdp: CDPSession = await page.context().newCDPSession(page);
  await cdp.send("WebAuthn.enable");
  const { authenticatorId } = await cdp.send("WebAuthn.addVirtualAuthenticator", {
    options: {
      protocol: "ctap2",
      transport: "internal",
      hasResidentKey: true,
      hasUserVerification: true,
      isUserVerified: true,
      automaticPresenceSimulation: true,
    },
  });
  await page.goto(origin + path);
  return {
    page,
    problems,
    async verifyUser(isUserVerified) {
      await cdp.send("WebAuthn.setUserVerified", { authenticatorId, isUserVerified });
    },
  };
}

async function signIn(page: Page, email: string, password: string): Promise<void> {
  await page.fill("#email", email);
  await page.fill("#password", password);
  await page.click("button[type=submit]");
}

async function addPasskey(page: Page, name: string, password = PASSWORD): Promise<void> {
  await page.fill("#passkey_name", name);
  await page.fill("#passkey_password", password);
  await page.click("[data-add-passkey] button");
}

async function signOut(page: Page): Promise<void> {
  await page.click("details.account summary");
  await page.getByRole("button", { name: "Sign out", exact: true }).click();
  await page.getByRole("heading", { name: "Sign in" }).waitFor();
}

/** Signs a decision in the browser, as a client of the API does, and settles. Answers the settlement's status and state. */
const signAndRelease = (page: Page, warrant: { readonly id: string; readonly version: number }) =>
  page.evaluate(async ({ id, version }) => {
    const post = async (path: string, body: unknown, headers = {}) => {
      const response = await fetch(path, {
        method: "POST",
        headers: { "Content-Type": "application/json", ...headers },
        body: JSON.stringify(body),
      });
      return { status: response.status, body: (await response.json()) as Json };
    };
    const web = globalThis as unknown as {
      PublicKeyCredential: { parseRequestOptionsFromJSON(options: unknown): unknown };
      navigator: { credentials: { get(options: unknown): Promise<{ toJSON(): unknown }> } };
    };
    const options = await post("/auth/passkey/challenge", { warrant_id: id, version, decision: "release" });
    const publicKey = web.PublicKeyCredential.parseRequestOptionsFromJSON(options.body);
    const credential = await web.navigator.credentials.get({ publicKey });
    const approval = await post("/auth/passkey/assertion", { response: credential.toJSON() });
    const headers = { "Idempotency-Key": `browser-${id}`, "Service-Passkey": approval.body.token };
    const released = await post(`/v1/warrants/${id}/release`, {}, headers);
    return [released.status, released.body.state];
  }, warrant);

const passkeysOn = (page: Page) => page.locator("li", { has: page.getByRole("link", { name: "Remove" }) });

test(
  "a person adds a passkey, signs in by it, and signs a release above the threshold",
  async () => {
    const { page, problems, verifyUser } = await openDesk("/account");
    const { operator } = home.people;
    await signIn(page, operator.email, "wrong password");
    await page.getByText("The e-mail or the password is wrong.").waitFor();
    await signIn(page, operator.email, PASSWORD);
    await page.getByText("You have none yet").waitFor();
    expect(new URL(page.url()).pathname).toBe(ACCOUNT);

    await addPasskey(page, "Laptop", "wrong password");
    await page.getByText("The password is wrong.").waitFor();
    // The page may show the passkey before it is loaded anew.
    await Promise.all([page.waitForEvent("load"), addPasskey(page, "Laptop")]);
    await passkeysOn(page).first().waitFor();
    expect(await passkeysOn(page).allTextContents()).toEqual([
      expect.stringMatching(/^\s*Laptopadded .* · not used yetRemove$/),
    ]);
    await addPasskey(page, "Again");
    await page.getByText("This device has a passkey of yours already.").waitFor();

    await signOut(page);
    await verifyUser(false);
    await page.click("[data-passkey-sign-in]");
    await page.getByText("The passkey was not used").waitFor();
    await verifyUser(true);
    await page.click("[data-passkey-sign-in]");
    await page.getByRole("heading", { name: "Overview" }).waitFor();
    await page.goto(base + ACCOUNT);
    expect(await page.locator(".head").textContent()).toContain(operator.email);
    await passkeysOn(page).getByText("last used").waitFor();

    await setThreshold(service, home, "100");
    const warrant = await service.opened(home, { amount: "101" });
    expect(await signAndRelease(page, warrant)).toEqual([200, "released"]);
    expect(service.balance(home).paid).toBe(101n);

    const dialog = page.getByRole("dialog");
    await passkeysOn(page).getByRole("link", { name: "Remove" }).click();
    await dialog.getByText("Remove the passkey “Laptop”?").waitFor();
    await dialog.locator("#password").fill("wrong password");
    await dialog.getByText("Remove it").click();
    await page.getByText("The password is wrong.").waitFor();
    await page.locator("#password").fill(PASSWORD);
    await page.getByText("Remove it").click();
    await page.getByText("The passkey is removed.").waitFor();
    expect(await passkeysOn(page).count()).toBe(0);
    expect(problems).toEqual([]);
  },
  TEST_MS,
);

test(
  "a person changes the password, and sets one by a link that works once",
  async () => {
    const { viewer } = home.people;
    const { page, problems } = await openDesk(ACCOUNT);
    await signIn(page, viewer.email, PASSWORD);
    const change = async (to: string) => {
      await page.fill("#current_password", PASSWORD);
      await page.fill("#new_password", to);
      await page.click("text=Change the password");
    };
    await change("password1234");
    await page.getByText("must be harder to guess. This is similar to a commonly used password.").waitFor();
    await change(NEW_PASSWORD);
    await page.getByText("Your password is changed").waitFor();
    await page.click("text=Sign out everywhere");
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
    expect((await service.get("/auth/session", { as: viewer.as })).status).toBe(401);

    const { url } = must(await issuePasswordReset(service.ctx, MACHINE, { user_id: viewer.id }));
    const link = new URL(url);
    expect([link.origin, link.pathname]).toEqual([base, "/reset-password"]);
    for (const words of ["Your password is set. Sign in with it.", "link"]) {
      const reset = await openDesk(link.pathname + link.hash);
      // The code stands in no address, and nobody need read it.
      expect(reset.page.url()).toBe(`${base}/reset-password`);
      expect(await reset.page.locator("#token").isVisible()).toBeFalse();
      await reset.page.fill("#new_password", PASSWORD);
      await reset.page.click("text=Set the password");
      await reset.page.locator("main", { hasText: words }).waitFor();
      expect(reset.problems).toEqual([]);
    }
    await signIn(page, viewer.email, PASSWORD);
    await page.waitForURL(/\/console/);
    await page.locator("details.account").waitFor();
    expect(problems).toEqual([]);
  },
  TEST_MS,
);

test(
  "a person whom the organisation asks for a passkey adds the first one, and uses it the next time",
  async () => {
    const organisation = await service.organisation();
    const { admin } = organisation.people;
    must(await setSecondFactor(service.ctx, MACHINE, { organisation_id: organisation.id, on: true }));
    const { page, problems } = await openDesk("/console/agents");
    await signIn(page, admin.email, PASSWORD);
    await page.getByText("asks you for a passkey beside the password, and you have none yet").waitFor();
    expect(await page.locator("button:visible").allTextContents()).toEqual(["Add a passkey", "Sign out"]);
    await addPasskey(page, "Laptop");
    // To where they wanted to go.
    await page.getByRole("heading", { name: "Agents" }).waitFor();

    await signOut(page);
    await page.goto(`${base}/console/agents`);
    await signIn(page, admin.email, PASSWORD);
    await page.getByText("asks you for your passkey beside the password").waitFor();
    expect(await page.locator("button:visible").allTextContents()).toEqual(["Use your passkey", "Sign out"]);
    await page.click("[data-passkey-sign-in]");
    await page.getByRole("heading", { name: "Agents" }).waitFor();
    expect(problems).toEqual([]);
  },
  TEST_MS,
);

test(
  "a person sees where they are signed in, and ends what they do not know",
  async () => {
    const { admin } = home.people;
    const { page, problems } = await openDesk(ACCOUNT);
    await signIn(page, admin.email, PASSWORD);
    const list = page.locator("li", { hasText: "last used" });
    await list.filter({ hasText: "This one" }).waitFor();
    expect(await list.count()).toBe(2);
    expect(await list.filter({ hasText: "Chrome" }).textContent()).toMatch(
      /This one127\.0\.0\.1 · live · since .+ · last used [^·]+$/,
    );
    // This one has no button.
    await page.getByRole("button", { name: "End", exact: true }).click();
    await page.getByText("That sign-in is ended.").waitFor();
    expect(await list.count()).toBe(1);
    expect((await service.get("/auth/session", { as: admin.as })).status).toBe(401);
    expect(problems).toEqual([]);
  },
  TEST_MS,
);

test(
  "at another address a page says where to open it; a link without its code asks for it",
  async () => {
    const elsewhere = await openDesk("/reset-password", service.url);
    await elsewhere.page.getByText(`Open this page at ${base}/reset-password`).waitFor();
    const torn = await openDesk("/reset-password");
    await torn.page.locator("#token").waitFor();
  },
  TEST_MS,
);
