/**
 * `bun run browser`: a person at /account in headless Chromium, whose virtual authenticator holds the passkeys. `bun test` does
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
  page.on("dialog", (dialog) => void dialog.accept());
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
  await page.fill("#sign-in [name=email]", email);
  await page.fill("#sign-in [name=password]", password);
  await page.click("#sign-in button:not([type])");
}

async function addPasskey(page: Page, name: string, password = PASSWORD): Promise<void> {
  await page.fill("#add-passkey [name=name]", name);
  await page.fill("#add-passkey [name=password]", password);
  await page.click("#add-passkey button");
}

async function removePasskey(page: Page, password = PASSWORD): Promise<void> {
  await page.click("#passkeys button");
  await page.getByText("Remove the passkey “Laptop”?").waitFor();
  await page.fill("#remove-passkey [name=password]", password);
  await page.click("#remove-passkey button:not([type])");
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

test(
  "a person adds a passkey, signs in by it, and signs a release above the threshold",
  async () => {
    const { page, problems, verifyUser } = await openDesk("/account");
    const { operator } = home.people;
    await signIn(page, operator.email, "wrong password");
    await page.getByText("The e-mail or the password is wrong.").waitFor();
    await signIn(page, operator.email, PASSWORD);
    await page.getByText("You have none yet.").waitFor();

    await addPasskey(page, "Laptop", "wrong password");
    await page.getByText("The password is wrong.").waitFor();
    await addPasskey(page, "Laptop");
    await page.getByText("“Laptop” is registered.").waitFor();
    expect(await page.locator("#passkeys li").allTextContents()).toEqual([
      expect.stringMatching(/^Laptopadded .* · not used yetRemove$/),
    ]);
    await addPasskey(page, "Again");
    await page.getByText("This device has a passkey of yours already.").waitFor();

    await page.click("#sign-out");
    await page.locator("#sign-in").waitFor();
    await verifyUser(false);
    await page.click("#sign-in-by-passkey");
    await page.getByText("The passkey was not used").waitFor();
    expect(await page.locator("#signed-in").isVisible()).toBeFalse();
    await verifyUser(true);
    await page.click("#sign-in-by-passkey");
    await page.locator("#who").waitFor();
    expect(await page.locator("#who").textContent()).toContain(
      `${operator.email}), operator of ${home.name}, in live.`,
    );
    await page.locator("#passkeys").getByText("last used").waitFor();

    await setThreshold(service, home, "100");
    const warrant = await service.opened(home, { amount: "101" });
    expect(await signAndRelease(page, warrant)).toEqual([200, "released"]);
    expect(service.balance(home).paid).toBe(101n);

    await removePasskey(page, "wrong password");
    await page.getByText("The password is wrong.").waitFor();
    await removePasskey(page);
    await page.getByText("“Laptop” is removed.").waitFor();
    expect(await page.locator("#passkeys li").count()).toBe(0);
    expect(problems).toEqual([]);
  },
  TEST_MS,
);

test(
  "a person changes the password, and sets one by a link that works once",
  async () => {
    const { viewer } = home.people;
    const { page, problems } = await openDesk("/account");
    await signIn(page, viewer.email, PASSWORD);
    await page.fill("#change-password [name=current_password]", PASSWORD);
    await page.fill("#change-password [name=new_password]", "password1234");
    await page.click("#change-password button");
    await page.getByText("must be harder to guess. This is similar to a commonly used password.").waitFor();
    await page.fill("#change-password [name=current_password]", PASSWORD);
    await page.fill("#change-password [name=new_password]", NEW_PASSWORD);
    await page.click("#change-password button");
    await page.getByText("The password is changed").waitFor();
    await page.click("#sign-out-everywhere");
    await page.getByText("You are signed out everywhere.").waitFor();
    expect((await service.get("/auth/session", { as: viewer.as })).status).toBe(401);

    const { url } = must(await issuePasswordReset(service.ctx, MACHINE, { user_id: viewer.id }));
    const link = new URL(url);
    expect([link.origin, link.pathname]).toEqual([base, "/reset-password"]);
    for (const words of ["Your password is set. Sign in with it.", "link"]) {
      const reset = await openDesk(link.pathname + link.hash);
      await reset.page.fill("[name=new_password]", PASSWORD);
      await reset.page.click("#reset-password button");
      await reset.page.locator(".message:visible", { hasText: words }).waitFor();
      expect(reset.page.url()).toBe(`${base}/reset-password`);
      expect(reset.problems).toEqual([]);
    }
    await signIn(page, viewer.email, PASSWORD);
    await page.locator("#who").waitFor();
    expect(problems).toEqual([]);
  },
  TEST_MS,
);

test(
  "a person whom the organisation asks for a passkey adds the first one, and uses it the next time",
  async () => {
    const { page, problems } = await openDesk("/account");
    const organisation = await service.organisation();
    const { admin } = organisation.people;
    const turn = (on: boolean) =>
      setSecondFactor(service.ctx, MACHINE, { organisation_id: organisation.id, on });
    must(await turn(true));
    await signIn(page, admin.email, PASSWORD);
    await page
      .getByText(`${organisation.name} asks you for a passkey beside the password, and you have none yet.`)
      .waitFor();
    expect(await page.locator("form:visible").evaluateAll((forms) => forms.map(({ id }) => id))).toEqual([
      "add-passkey",
    ]);
    expect(await page.locator("button:visible").allTextContents()).toEqual([
      "Add a passkey",
      "Sign out here",
    ]);
    await addPasskey(page, "Laptop");
    await page.getByText("“Laptop” is registered.").waitFor();
    await page.locator("#change-password").waitFor();
    expect(await page.locator("#owed").isVisible()).toBeFalse();

    await page.click("#sign-out");
    await page.locator("#sign-in").waitFor();
    await signIn(page, admin.email, PASSWORD);
    await page.getByText(`${organisation.name} asks you for your passkey beside the password.`).waitFor();
    expect(await page.locator("form:visible").count()).toBe(0);
    expect(await page.locator("button:visible").allTextContents()).toEqual([
      "Use your passkey",
      "Sign out here",
    ]);
    await page.click("#prove-passkey");
    await page.locator("#passkeys").getByText("last used").waitFor();
    await page.locator("#change-password").waitFor();
    expect(problems).toEqual([]);
  },
  TEST_MS,
);

test(
  "a person sees where they are signed in, and ends what they do not know",
  async () => {
    const { admin } = home.people;
    const { page, problems } = await openDesk("/account");
    await signIn(page, admin.email, PASSWORD);
    const list = page.locator("#sign-ins li");
    await list.filter({ hasText: "(this one)" }).waitFor();
    expect(await list.count()).toBe(2);
    const known = list.filter({ hasText: "Chrome" });
    expect(await known.textContent()).toMatch(
      /\(this one\)from 127\.0\.0\.1 · live · since .+ · last used .+ · until [^·]+$/,
    );
    // This one has no button.
    await page.click("#sign-ins button");
    await page.getByText("That sign-in is ended.").waitFor();
    expect(await list.count()).toBe(1);
    expect((await service.get("/auth/session", { as: admin.as })).status).toBe(401);
    expect(problems).toEqual([]);
  },
  TEST_MS,
);

test(
  "at another address the page says where to open it; a link without its token says that it needs the whole link",
  async () => {
    const elsewhere = await openDesk("/account", service.url);
    await elsewhere.page.getByText(`Open this page at ${base}/account`).waitFor();
    expect(await elsewhere.page.locator("form:visible").count()).toBe(0);
    const torn = await openDesk("/reset-password");
    await torn.page.getByText("This page needs the whole link").waitFor();
    expect(await torn.page.locator("form:visible").count()).toBe(0);
  },
  TEST_MS,
);
