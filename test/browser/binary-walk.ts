/**
 * `bun run browser`: the executable from its first start on, as people use it in headless Chromium: the set-up link, a budget for
 * an agent, warrants, escalations, a chat, a policy, webhooks, people, push notices, and what each role sees and is refused.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { join } from "node:path";
import type { Locator, Page } from "playwright-core";
import { consoleRoutes } from "../../src/console/routes.ts";
import { ROLES, type Role, roleIsAtLeast } from "../../src/core/roles.ts";
import { type AllRowsReader, openAllRows } from "../support/all-rows.ts";
import { BOT_TOKEN, type BotApiServer, type BotCall, startBotApi } from "../support/bot-api.ts";
import { BY_BOT, buttonsIn, createUpdates, SECRET, WEBHOOK } from "../support/chats.ts";
import { openChromium, PHONE, signIn, WALK_MS } from "../support/chromium.ts";
import { type Client, type Credentials, createClient, type Json } from "../support/client.ts";
import { openConsole } from "../support/console.ts";
import { ROLE_OF } from "../support/console-roles.ts";
import { addressesOf, formsOf, lineOf, OWN, operationsOf, type Things } from "../support/console-verbs.ts";
import { CONTACT } from "../support/devices.ts";
import { type Installation, install, type RunningServer } from "../support/executable.ts";
import { notifiedPage } from "../support/notified-page.ts";
import { type PushService, startPushService } from "../support/push-service.ts";
import { createJudge, type Receiver, startReceiver } from "../support/receiver.ts";
import { type Source, startSource } from "../support/source.ts";
import { LOCALHOST_CERTIFICATE } from "../support/tls.ts";
import { until } from "../support/until.ts";

const PASSWORD = "velvet harbour ginger notion";
const GRACES_PASSWORD = "copper lantern walnut drift";
const PROMISE = [{ kind: "json.jsonpath", path: "$.done", equals: true }];
/** A deliverable of the source may keep one of these two promises. */
const HALF = [1, 2].map((equals) => ({ kind: "json.jsonpath", path: "$.a", equals }));
const PLENTY = "1000000";

let holdfast: Installation;
let server: RunningServer;
let source: Source;
let receiver: Receiver;
let bot: BotApiServer;
let push: PushService;
let chromium: Awaited<ReturnType<typeof openChromium>>;
let client: Client;
let rows: AllRowsReader;
let base: string;
const problems: string[] = [];

/** Ada, the owner, at her laptop. */
let ada: Page;
let organisation: string;
/** The agent of the first steps, in the sandbox. */
let firstBuyer: { readonly agent_id: string; readonly as: Credentials };
/** The agent that gets a budget in the console, and its key. */
let agent: string;
let agentKey: Credentials;
/** The key of an agent without a budget, for what happens behind the scenes. */
let machine: Credentials;
/** A warrant that the budgeted agent holds. */
let heldByAgent: string;

beforeAll(async () => {
  [source, receiver, bot, push] = [startSource(), startReceiver(), startBotApi(), startPushService()];
  holdfast = install(
    {
      ...{ PORT: "0", ALLOW_NETWORKS: "127.0.0.0/8", X402_ALLOW_NETWORKS: "127.0.0.0/8" },
      ...{ RATE_READ: PLENTY, RATE_WRITE: PLENTY, RATE_BENCH: PLENTY, PUSH_CONTACT: CONTACT },
      ...{ MESSAGING_URL: bot.url, MESSAGING_TOKEN: BOT_TOKEN, MESSAGING_SECRET: SECRET },
    },
    LOCALHOST_CERTIFICATE,
  );
  server = await holdfast.serve();
  ({ base } = server);
  client = createClient(fetch, base);
  rows = openAllRows(join(holdfast.folder, "data"));
  chromium = await openChromium(problems);
  ada = await chromium.openPage();
}, WALK_MS);
afterAll(async () => {
  await chromium?.close();
  rows?.close();
  await holdfast?.remove();
  source?.stop();
  receiver?.stop();
  bot?.stop();
  push?.stop();
});

const heading = (at: Page, name: string) => at.getByRole("heading", { name }).waitFor();
const pathOf = (page: Page) => new URL(page.url()).pathname;
const idIn = (page: Page) => pathOf(page).split("/").at(-1)!;
const bearer = (secret: string): Credentials => ({ Authorization: `Bearer ${secret}` });
const inAnHour = () => new Date(Date.now() + 3_600_000).toISOString();

/** The cookie of who is signed in on a page, for requests by hand. */
async function cookieOf(page: Page): Promise<Credentials> {
  const cookies = await page.context().cookies();
  const { value = "none" } = cookies.find(({ name }) => name === "service_session") ?? {};
  return { Cookie: `service_session=${value}` };
}

/** What is available, held and paid in live, in the smallest units. */
async function money() {
  const { balances } = await holdfast.json("balances", "show", ...account());
  const { available, held, paid } = balances.find(({ asset }: Json) => asset === "USDC");
  return { available: BigInt(available), held: BigInt(held), paid: BigInt(paid) };
}
const account = (mode = "live") => ["--organisation", organisation, "--mode", mode] as const;

/** Expects that some work moves exactly this money. */
async function expectMoves(
  by: { available: bigint; held: bigint; paid: bigint },
  work: () => Promise<unknown>,
) {
  const before = await money();
  await work();
  expect(await money()).toEqual({
    available: before.available + by.available,
    held: before.held + by.held,
    paid: before.paid + by.paid,
  });
}

const openingOf = (fields: object): object => ({
  ...{ amount: "1000000", payee: "Northwind", deadline: inAnHour(), spec: { clauses: PROMISE } },
  ...fields,
});

/** A warrant that a program opens by its key. */
async function opens(fields: object, as = machine): Promise<Json> {
  const reply = await client.post("/v1/warrants", openingOf(fields), { as });
  expect([reply.status, reply.text]).toEqual([201, expect.stringContaining('"held"')]);
  return reply.body;
}

const verifies = (id: string, deliverable: object, as = machine) =>
  client.post(`/v1/warrants/${id}/verify`, { source_url: source.gives(deliverable) }, { as });

/** A warrant whose check nobody decided. */
async function escalates(fields: object): Promise<string> {
  const { id } = await opens(fields);
  expect((await verifies(id, { done: false })).body.state).toBe("escalated");
  return id;
}
const stateOf = async (id: string) => (await client.get(`/v1/warrants/${id}`, { as: machine })).body.state;

/** What came back. */
type Said = { readonly status: number; readonly said: string };

/** Sends what must be refused for want of a role, or for another reason; and nothing of the organisation changes. */
async function refuses(what: string, work: () => Promise<Said>, ...because: readonly string[]) {
  const before = rowsNow();
  const { status, said } = await work();
  expect([what, status]).toEqual([what, 403]);
  for (const words of because) expect([what, said]).toEqual([what, expect.stringContaining(words)]);
  expect([what, rowsNow()]).toEqual([what, before]);
}

/** All rows of the organisation but its notices, which are sent at any moment. */
const rowsNow = () => ({ ...rows.of(organisation), notices: [] });

/** Sends a form by hand, as the page's own form is sent. */
async function sendsForm(
  as: Credentials,
  to: string,
  fields: Readonly<Record<string, string>>,
  mode = "live",
): Promise<Said> {
  const sent = { _key: crypto.randomUUID(), _mode: mode, ...fields };
  const { status, text } = await openConsole({ url: base }, as).post(to, sent);
  return { status, said: text };
}

async function firstRun() {
  await ada.goto(base);
  await heading(ada, "Holdfast is not set up yet");
  const [link = "none"] = /http:\S+\/console\/set-up#\S+/.exec(server.printed()) ?? [];
  await ada.goto(link);
  expect(ada.url()).toBe(`${base}/console/set-up`);
  await ada.fill("#organisation", "Acme Ltd.");
  await ada.fill("#name", "Ada Lovelace");
  await ada.fill("#email", "ada@example.com");
  await ada.fill("#password", PASSWORD);
  await ada.click("button:has-text('Make the organisation')");
  await heading(ada, "Welcome, Ada Lovelace");
  await ada.fill("#passkey_name", "Laptop");
  await ada.fill("#passkey_password", PASSWORD);
  // The page may show the passkey before it is loaded anew.
  await Promise.all([ada.waitForEvent("load"), ada.click("button:has-text('Add a passkey')")]);
  await ada.getByText("You have a passkey.").waitFor();
  await ada.click("text=Make the agent, and try it");
  await heading(ada, "It works Released");
  const key = await ada.inputValue("#secret");
  expect(key).toMatch(/^hf_test_/);
  // The command on the page is the agent's next warrant.
  const [body = ""] = /\{"agent_id".*\}/s.exec((await ada.locator("pre").textContent()) ?? "") ?? [];
  const next = await client.post("/v1/warrants", body, { as: bearer(key) });
  expect([next.status, next.body?.state, next.body?.mode ?? "sandbox"]).toEqual([201, "held", "sandbox"]);
  firstBuyer = { agent_id: JSON.parse(body).agent_id, as: bearer(key) };
  await ada.click("a:has-text('The receipt')");
  await ada.getByText("SANDBOX").first().waitFor();
  await ada.click("#verify");
  await ada.getByText("The receipt holds; nothing in it was altered.").waitFor();
}

async function theLinkIsUsedUp() {
  const [, code = ""] = /set-up#(\S+)/.exec(server.printed()) ?? [];
  const fields = { organisation: "Evil", name: "Eve", email: "eve@example.com", password: PASSWORD };
  const again = await openConsole({ url: base }, {}).post("/console/set-up", { token: code, ...fields });
  expect([again.status, again.headers.get("set-cookie")]).toEqual([401, null]);
  expect(again.text).toContain("unknown, used or out of date");
}

async function moneyComesIn() {
  await ada.goto(`${base}/console`);
  await ada.click("button:has-text('Live')");
  await ada.getByText("There is no money yet").waitFor();
  await ada.click("text=Record the first deposit");
  await ada.fill("#amount", "50000");
  await ada.fill("#reference", "wire 1");
  await ada.click("text=Go on");
  await ada.getByText("Record it").dblclick();
  await ada.getByText("The deposit is recorded.").waitFor();
  const { data } = (await client.get("/v1/console/users", { as: await cookieOf(ada) })).body;
  expect(data.map(({ role }: Json) => role)).toEqual(["owner"]);
  const session = await client.get("/auth/session", { as: await cookieOf(ada) });
  organisation = session.body.organisation.id;
  expect(await money()).toEqual({ available: 50_000_000_000n, held: 0n, paid: 0n });
}

async function anAgentGetsABudget() {
  await ada.click("nav >> text=Agents");
  await ada.click("text=Make an agent");
  await ada.fill("#name", "Research buyer");
  await ada.click("text=Make it");
  await ada.getByText("The agent is made.").waitFor();
  agent = idIn(ada);
  await ada.getByRole("link", { name: "Give it a budget" }).click();
  await ada.fill("#amount_ceiling", "25");
  await ada.fill("#per_warrant_max", "10.00");
  await ada.fill("#payees", "Northwind*");
  await ada.click("button:has-text('Give it this budget')");
  await ada.getByText("It has a new budget.").waitFor();
  await ada.click("button:has-text('Make a key')");
  await heading(ada, "The new key");
  agentKey = bearer(await ada.inputValue("#secret"));
  await ada.click("text=I have saved it");
  await ada.getByText("0.00 USDC of 25.00 USDC").waitFor();
}

async function theAgentSpendsWithinIt() {
  const isRefused = (fields: object, ...because: readonly string[]) =>
    refuses(
      JSON.stringify(fields),
      async () => {
        const { status, text } = await client.post("/v1/warrants", openingOf(fields), { as: agentKey });
        return { status, said: text };
      },
      ...because,
    );
  const own = { agent_id: agent };
  const bought = await opens({ ...own, amount: "8400000", payee: "Northwind Weather" }, agentKey);
  await expectMoves({ available: 0n, held: -8_400_000n, paid: 8_400_000n }, async () => {
    expect((await verifies(bought.id, { done: true }, agentKey)).body.state).toBe("released");
  });
  await isRefused({ ...own, amount: "10000001" }, "session_limit_exceeded", "per_warrant_max");
  await isRefused({ ...own, payee: "Stranger" }, "session_limit_exceeded", "payees");
  await isRefused({}, "agent_id_required");
  heldByAgent = (await opens({ ...own, amount: "9000000", payee: "Northwind Maps" }, agentKey)).id;
  await isRefused({ ...own, amount: "7600001" }, "session_ceiling_exceeded");
  await ada.reload();
  await ada.getByText("17.40 USDC of 25.00 USDC").waitFor();
}

async function aWarrantIsOpenedByTheForm() {
  await ada.click("nav >> text=Warrants");
  await ada.getByRole("link", { name: "Open a warrant" }).click();
  await ada.fill("#payee", "Contoso");
  await ada.fill("#amount", "10");
  await ada.fill("#clauses", JSON.stringify(PROMISE));
  await expectMoves({ available: -10_000_000n, held: 10_000_000n, paid: 0n }, async () => {
    await ada.getByText("Hold the amount").dblclick();
    await ada.getByText("The amount is held.").waitFor();
  });
  await ada.fill("#source_url", source.gives({ done: true }));
  await expectMoves({ available: 0n, held: -10_000_000n, paid: 10_000_000n }, async () => {
    await ada.click("text=Fetch and check");
    await ada.getByText("The check was made.").waitFor();
  });
  expect(await ada.locator("h1 .badge").textContent()).toBe("Released");
}

const updates = createUpdates();
const ADAS_CHAT = 42;

/** Hands the service what somebody wrote or pressed in a chat. */
async function posts(update: object): Promise<void> {
  const { status } = await client.post(WEBHOOK, update, { headers: BY_BOT, key: null });
  expect(status).toBe(200);
}

/** What the bot was asked, and no step has looked at yet. */
const asked: BotCall[] = [];

/** The next message, new or changed, that the bot is asked to show in a chat. */
const botShows = (method: "sendMessage" | "editMessageText", chatId: number): Promise<Json> =>
  until(`${method} in the chat ${chatId}`, async () => {
    asked.push(...bot.asked());
    const isIt = (one: BotCall) => one.method === method && one.parameters.chat_id === String(chatId);
    const at = asked.findIndex(isIt);
    return at < 0 ? null : asked.splice(at, 1)[0]?.parameters;
  });

/** In the sandbox, so that what is told in live begins with what comes there. */
async function anEscalationIsDecidedInAChat() {
  await ada.goto(`${base}/console/settings`);
  await ada.click("button:has-text('Allow decisions in chats')");
  await ada.getByRole("button", { name: "Decide at the console alone" }).waitFor();
  await ada.goto(`${base}/console/settings/notices`);
  await ada.click("text=Link a chat");
  await ada.fill("#password", PASSWORD);
  await ada.click("text=Make a code");
  const code = await ada.inputValue("#secret");
  await ada.click("text=I have sent it");
  await posts(updates.message(ADAS_CHAT, `/start ${code}`));
  expect((await botShows("sendMessage", ADAS_CHAT)).text).toContain("This chat is linked to");
  // The open page shows it by itself.
  await ada.getByRole("button", { name: "Unlink it" }).waitFor();
  const { agent_id, as } = firstBuyer;
  const { id } = await opens({ agent_id, payee: "Northwind Chat" }, as);
  expect((await verifies(id, { done: false }, as)).body.state).toBe("escalated");
  const told = await botShows("sendMessage", ADAS_CHAT);
  expect(told.text).toContain(`1.00 USDC to Northwind Chat (${id})`);
  await posts(updates.press(ADAS_CHAT, buttonsIn(told).Release ?? ""));
  const sure = buttonsIn(await botShows("editMessageText", ADAS_CHAT));
  expect((await client.get(`/v1/warrants/${id}`, { as })).body.state).toBe("escalated");
  await posts(updates.press(ADAS_CHAT, sure["Yes, release"] ?? ""));
  const { text } = await botShows("editMessageText", ADAS_CHAT);
  expect(text).toStartWith("SANDBOX: Released: 1.00 USDC was paid to Northwind Chat.");
  const { body } = await client.get(`/v1/warrants/${id}`, { as });
  expect([body.state, body.released_bps]).toEqual(["released", 10_000]);
  await ada.getByRole("button", { name: "Unlink it" }).click();
  await ada.getByRole("link", { name: "Link a chat" }).waitFor();
}

/** 33 % of 12 345.678901 USDC is 4 074.07403733 USDC: what is less than a unit stays here. */
async function aPartIsPaidByTheSlider() {
  await ada.goto(`${base}/console/warrants/new`);
  await ada.fill("#payee", "Fabrikam");
  await ada.fill("#amount", "12345.678901");
  await ada.click("text=Hold the amount");
  await ada.getByText("The amount is held.").waitFor();
  await ada.click("text=Release a part");
  const dialog = ada.getByRole("dialog");
  await dialog.locator("input[type=range]").focus();
  for (let percent = 50; percent > 33; percent--) await ada.keyboard.press("ArrowLeft");
  expect(await dialog.locator("#share").inputValue()).toBe("33");
  const sides = ["4 074.074037\u00a0USDC", "8 271.604864\u00a0USDC"];
  expect(
    await Promise.all(["paid", "returned"].map((side) => dialog.locator(`[data-${side}]`).textContent())),
  ).toEqual(sides);
  await expectMoves({ available: 8_271_604_864n, held: -12_345_678_901n, paid: 4_074_074_037n }, async () => {
    await dialog.getByText("Release this part").dblclick();
    await ada.getByText("The warrant is settled.").waitFor();
  });
  const facts = (await ada.locator("#facts").textContent()) ?? "";
  for (const side of sides) expect(facts.replaceAll("\u00a0", " ")).toContain(side.replace("\u00a0", " "));
}

async function aPolicyIsDraftedAndSaved() {
  const made = await holdfast.json("agents", "create", ...account(), "--name", "Backstage");
  machine = bearer((await holdfast.json("keys", "create", "--agent", made.id)).secret);
  const half = await opens({ amount: "4000000", spec: { clauses: HALF } });
  expect((await verifies(half.id, { a: 1 })).body.state).toBe("escalated");
  await ada.click("nav >> text=Policies");
  await ada.click("text=Draft the first one");
  await ada.fill("#name", "standard");
  await ada.click("text=Add a band");
  const band = (name: string): Locator => ada.locator(`[name="bands.2.${name}"]`);
  await band("minScore").fill("0.5");
  await band("outcome").selectOption("partial_release");
  await band("share").fill("25");
  await ada.getByRole("img", { name: /0\.5 to below 1: Release 25 %/ }).waitFor();
  await ada.click("text=Back-test it");
  // Of the checks of the agent's warrant, of the form's, and of the half.
  await ada.getByText("1 of 3 checks would flip, +1.00").waitFor();
  expect(await stateOf(half.id)).toBe("escalated");
  await ada.click("text=Save the policy");
  await ada.getByText("Version 1 is saved.").waitFor();
  const next = await opens({ amount: "4000000", spec: { clauses: HALF } });
  await expectMoves({ available: 3_000_000n, held: -4_000_000n, paid: 1_000_000n }, async () => {
    expect((await verifies(next.id, { a: 1 })).body).toMatchObject({
      state: "partially_released",
      released_bps: 2500,
    });
  });
}

async function anEscalationIsSignedWithAPasskey() {
  await ada.click("nav >> text=Settings");
  await ada.fill("#amount", "5");
  await ada.click("button:has-text('Set the threshold')");
  await ada.getByText("The passkey threshold is changed.").waitFor();
  expect((await verifies(heldByAgent, { done: false }, agentKey)).body.state).toBe("escalated");
  await ada.click("nav >> text=Overview");
  await ada.locator("#needs").getByText("Northwind Maps").click();
  await heading(ada, "Escalations");
  // Without the passkey nothing moves.
  const byHand = { version: "3", decision: "release", note: "", passkey_token: "" };
  const as = await cookieOf(ada);
  await refuses("no passkey", () => sendsForm(as, pathOf(ada), byHand), "passkey");
  await ada.check("[value=release]");
  await ada.fill("#note", "They have sent it by mail");
  await expectMoves({ available: 0n, held: -9_000_000n, paid: 9_000_000n }, async () => {
    await ada.click("text=Decide, with your passkey");
    await ada.getByText("Your decision is recorded.").waitFor();
  });
  expect(await stateOf(heldByAgent)).toBe("released");
}

async function aWebhookIsSentAgain() {
  await ada.click("nav >> text=Webhooks");
  await ada.click("text=Add the first one");
  await ada.fill("#url", receiver.url("/hook"));
  await ada.check("[name='event_warrant.opened']");
  await ada.click("text=Add it");
  await heading(ada, "The endpoint is added");
  const [judge, forger] = [await ada.inputValue("#secret"), "whsec_another"].map(createJudge);
  await ada.click("text=I have saved it");
  const { id } = await opens({ payee: "Tailspin" });
  await ada.locator("#deliveries").getByText("Delivered").waitFor();
  await ada.locator("#deliveries").getByText("warrant.opened").click();
  await ada.getByText("Answer to the last attempt").waitFor();
  await ada.getByText("Send it again").dblclick();
  await ada.getByText("The event is on its way again").waitFor();
  await ada.locator("#progress").getByText("Delivered").waitFor();
  const received = await receiver.whenReceived(2);
  expect(received.map((one) => judge!(one, Date.now()))).toEqual(["accepted", "accepted"]);
  expect(received.map((one) => forger!(one, Date.now()))).toEqual(["forged", "forged"]);
  const [first, again] = received;
  expect([again?.body.id, again?.body.data.warrant_id]).toEqual([first?.body.id, id]);
  expect(again?.delivery).not.toBe(first?.delivery);
  expect(received).toHaveLength(2);
}

async function somebodyIsInvitedAndDemoted() {
  await ada.click("nav >> text=People");
  await ada.click("a:has-text('Invite somebody')");
  await ada.fill("#name", "Grace Hopper");
  await ada.fill("#email", "grace@example.com");
  await ada.selectOption("#role", "operator");
  await ada.click("text=Make the invitation");
  await heading(ada, "Grace Hopper is invited");
  const grace = await chromium.openPage();
  await grace.goto(await ada.inputValue("#secret"));
  await grace.fill("[name=new_password]", GRACES_PASSWORD);
  await grace.click("button:has-text('Set the password')");
  await grace.getByText("Your password is set.").waitFor();
  await signIn(
    grace,
    base,
    { email: "grace@example.com", password: GRACES_PASSWORD },
    "/console/warrants/new",
  );
  const opening = {
    payee: "By Grace",
    amount: "0.5",
    asset: "USDC",
    deadline: "1d",
    clauses: JSON.stringify(PROMISE),
  };
  await grace.fill("#payee", opening.payee);
  await grace.fill("#amount", opening.amount);
  await grace.click("text=Hold the amount");
  await grace.getByText("The amount is held.").waitFor();

  await ada.click("text=Their page");
  await ada.selectOption("#role", "viewer");
  await ada.click("button:has-text('Change the role')");
  await ada.getByText("The role is changed.").waitFor();
  // Her page is still open, with what she might do before.
  await grace.getByRole("link", { name: "Refund" }).click();
  await heading(grace, "You may not do that");
  await grace.goBack();
  await grace.reload();
  expect(await grace.getByRole("link", { name: "Refund" }).count()).toBe(0);
  await grace.goto(`${base}/console/warrants/new`);
  await heading(grace, "You may not do that");
  const as = await cookieOf(grace);
  const role = "insufficient_role";
  await refuses("Grace opens", () => sendsForm(as, "/console/warrants/new", opening), role);
  await grace.context().close();
}

/** Encrypted, and decrypted by a push service; given to the page's service worker by the debugging protocol. */
async function aPushNoticeOpensTheEscalation() {
  const pushed = () => until("a push notice comes", () => push.received()[0] ?? null);
  const browser = push.subscribe();
  const notified = await notifiedPage(ada, base, browser);
  await ada.goto(`${base}/console/settings/notices`);
  await ada.fill("#device_name", "Ada's laptop");
  await ada.click("button:has-text('Notify me on this device')");
  await ada.getByText("You are notified on this device from now on.").waitFor();
  await ada.locator("#devices").getByText("this one").waitFor();
  await ada.click("button:has-text('Send me a test notice')");
  const tried = await pushed();
  expect(tried).toMatchObject({ endpoint: browser.endpoint, claims: { sub: CONTACT, aud: push.origin } });
  expect(tried.key).toBe(await notified.subscribedBy());
  expect((await notified.deliver(tried.text)).title).toBe("A test notice");

  const id = await escalates({ amount: "3000000" });
  const { text, headers } = await pushed();
  expect(headers).toMatchObject({ ttl: "86400", urgency: "high" });
  const notice = await notified.deliver(text);
  expect(notice.title).toBe("3.00 USDC waits for your decision");
  const { opened, focused } = await notified.click(notice.tag);
  expect([opened.length, focused]).toEqual([1, []]);
  await ada.goto(opened[0]!);
  expect(pathOf(ada)).toMatch(/^\/console\/escalations\/esc_/);
  await ada.locator("[data-inbox] [aria-current=true]").getByText("3.00").waitFor();
  await ada.check("[value=refund]");
  await expectMoves({ available: 3_000_000n, held: -3_000_000n, paid: 0n }, async () => {
    await ada.getByRole("button", { name: "Decide" }).click();
    await ada.getByText("Your decision is recorded.").waitFor();
  });
  expect(await stateOf(id)).toBe("refunded");
  expect(push.refused()).toEqual([]);
  for (const secret of [new URL(browser.endpoint).pathname, browser.auth])
    expect(holdfast.logged()).not.toContain(secret);
}

const emailOf = (role: Role) => (role === "owner" ? "ada@example.com" : `${role}@example.com`);

const credentialsOf = (role: Role) => ({ email: emailOf(role), password: PASSWORD });

async function theOthersJoin() {
  for (const role of ["viewer", "operator", "admin"] as const) {
    const person = ["--email", emailOf(role), "--password", PASSWORD, "--role", role];
    await holdfast.run("users", "create", "--organisation", organisation, ...person);
  }
}

/** From the sign-in to the last decision, without a mouse. */
async function theInboxIsDecidedByTheKeyboard() {
  const small = await escalates({ amount: "1000000" });
  await escalates({ amount: "2000000" });
  const page = await chromium.openPage();
  const { keyboard } = page;
  /** Tab until this has the focus, and shows it. */
  const tabTo = async (what: string) => {
    for (let count = 0; count < 60; count++) {
      await keyboard.press("Tab");
      const [text, outline] = await page.evaluate<[string, string]>(
        "(({ activeElement: one }) => [one.name || one.textContent, getComputedStyle(one).outlineStyle])(document)",
      );
      expect([text, outline]).not.toEqual([text, "none"]);
      if (text.trim().startsWith(what)) return;
    }
    throw new Error(`Tab does not lead to ${what}`);
  };
  await page.goto(`${base}/console`);
  await tabTo("email");
  await keyboard.type(emailOf("operator"));
  await tabTo("password");
  await keyboard.type(PASSWORD);
  await keyboard.press("Enter");
  await heading(page, "Overview");
  await tabTo("Skip to the content");
  await tabTo("Escalations");
  await keyboard.press("Enter");
  const current = page.locator("[data-inbox] [aria-current=true]");
  await current.getByText("4.00").waitFor();
  await keyboard.press("j");
  await current.getByText("1.00").waitFor();
  await keyboard.press("k");
  await current.getByText("4.00").waitFor();
  await keyboard.press("2");
  await keyboard.press("Tab");
  for (const _ of [51, 52]) await keyboard.press("ArrowRight");
  await tabTo("note");
  await keyboard.type("Half of it is there");
  await expectMoves({ available: 1_920_000n, held: -4_000_000n, paid: 2_080_000n }, async () => {
    await keyboard.press("Enter");
    await page.getByText("Your decision is recorded.").waitFor();
  });
  await current.getByText("1.00").waitFor();
  await keyboard.press("3");
  await keyboard.press("Enter");
  await current.getByText("2.00").waitFor();
  expect(await stateOf(small)).toBe("refunded");
  await page.context().close();
}

/** Nothing is wider than the screen, and nothing that one taps is too small for a finger. */
async function expectForFingers(page: Page) {
  const found = await page.evaluate<{ tooWide: number; tooSmall: string[] }>(`({
    tooWide: document.documentElement.scrollWidth - innerWidth,
    tooSmall: [...document.querySelectorAll("button, .button, label.choice, input:not([type=hidden]), select, nav a")]
      .map((one) => [one.closest("label") ?? one, one.closest("label")?.getBoundingClientRect() ?? one.getBoundingClientRect()])
      .filter(([one, { width, height }]) => one.checkVisibility() && Math.min(width, height) < ${FINGER})
      .map(([one, { width, height }]) => one.outerHTML.slice(0, 90) + ": " + width + " × " + height),
  })`);
  expect([pathOf(page), found]).toEqual([pathOf(page), { tooWide: 0, tooSmall: [] }]);
}
/** The least side in CSS pixels of what one taps (WCAG 2.2, 2.5.8). */
const FINGER = 24;

async function anAdminDecidesOnAPhone() {
  const phone = await chromium.openPage({ viewport: PHONE, isMobile: true, hasTouch: true });
  await phone.goto(`${base}/console`);
  await expectForFingers(phone);
  await phone.locator("#email").fill(emailOf("admin"));
  await phone.locator("#password").fill(PASSWORD);
  await phone.locator("button[type=submit]").tap();
  await heading(phone, "Overview");
  await expectForFingers(phone);
  await phone.locator("#needs").getByText("2.00").tap();
  await heading(phone, "Escalations");
  await expectForFingers(phone);
  await phone.getByText("Refund", { exact: true }).tap();
  await expectMoves({ available: 2_000_000n, held: -2_000_000n, paid: 0n }, async () => {
    await phone.getByRole("button", { name: "Decide" }).tap();
    await phone.getByText("Nothing else waits for a person.").waitFor();
  });
  await phone.context().close();
}

async function withoutAScriptAWarrantIsOpened() {
  const plain = await chromium.openWithoutScript();
  await signIn(plain, base, credentialsOf("operator"), "/console/warrants");
  await plain.getByRole("link", { name: "Open a warrant" }).click();
  await plain.fill("#payee", "Plain");
  await plain.fill("#amount", "ten");
  await plain.click("text=Hold the amount");
  await plain.locator("#amount-problem").waitFor();
  expect(await plain.inputValue("#payee")).toBe("Plain");
  await plain.fill("#amount", "2.5");
  await expectMoves({ available: -2_500_000n, held: 2_500_000n, paid: 0n }, async () => {
    await plain.click("text=Hold the amount");
    await plain.getByText("The amount is held.").waitFor();
  });
  await plain.click("text=Refund");
  await plain.click("text=Refund it");
  await plain.getByText("The warrant is settled.").waitFor();
  await plain.context().close();
}

async function signingOutEverywhereEndsTheOtherBrowser() {
  const other = await chromium.openPage();
  await signIn(other, base, credentialsOf("owner"));
  const stream = other.waitForResponse((response) => response.url().includes("/console/events"));
  await other.goto(`${base}/console/warrants`);
  expect((await stream).status()).toBe(200);
  const as = await cookieOf(other);
  expect((await client.get("/auth/session", { as })).status).toBe(200);
  await ada.goto(`${base}/console/account`);
  await ada.click("button:has-text('Sign out everywhere')");
  await heading(ada, "Sign in");
  await other.getByText("You are signed out.").waitFor();
  expect((await client.get("/auth/session", { as })).status).toBe(401);
  expect(rows.of(organisation).push_subscriptions).toEqual([]);
  await other.click("nav >> text=Agents");
  await heading(other, "Sign in");
  await other.context().close();
  // The passkey signs her in again.
  await ada.click("text=Sign in with a passkey");
  await heading(ada, "Overview");
}

let things: Things;

/** What the roles look at and act on. */
async function thingsAreMade() {
  const made = async (...args: readonly string[]): Promise<Json> => holdfast.json(...args);
  const ofOrganisation = ["--organisation", organisation] as const;
  const seller = Bun.serve({
    ...{ hostname: "127.0.0.1", port: 0 },
    fetch: ({ headers }) =>
      headers.has("x-payment")
        ? Response.json({ done: true })
        : Response.json({ amount: "100000", asset: "USDC", payee: "Seller" }, { status: 402 }),
  });
  const order = { url: `${seller.url}forecast`, max_amount: "100000", spec: { clauses: PROMISE } };
  expect((await client.post("/v1/x402/pay", order, { as: machine })).body.state).toBe("released");
  await seller.stop(true);
  await ada.goto(`${base}/console/purchases`);
  await ada.getByText("/forecast").click();
  const bought = idIn(ada);
  const paused = await made("agents", "create", ...account(), "--name", "Paused");
  await holdfast.run("agents", "set-status", paused.id, "paused");
  const active = await made("agents", "create", ...account(), "--name", "Active");
  const key = async () => (await made("keys", "create", "--agent", active.id)).id;
  const person = ["--email", "target@example.com", "--password", PASSWORD, "--role", "viewer"];
  const clause = ["--type", "http.status", "--name", "works", "--config", '{"equals":200}'];
  const hook = (await client.get("/v1/console/webhooks", { as: await cookieOf(ada) })).body;
  const escalated = await escalates({ amount: "1500000" });
  const [escalation] = (await client.get("/v1/console/escalations", { as: await cookieOf(ada) })).body.data;
  expect(escalation.warrant_id).toBe(escalated);
  const [toVerify, toSettle] = [await opens({}), await opens({})];
  await until("every delivery has arrived", async () => {
    const { deliveries } = (await client.get("/v1/console/webhooks", { as: await cookieOf(ada) })).body;
    return deliveries.every(({ status }: Json) => status === "delivered");
  });
  // On a busy machine the second that an evaluator has for it may be too short: then one asks again.
  const schema = await until("the schema is saved", () =>
    made("schemas", "create", ...ofOrganisation, "--name", "any.v1", "--schema", "{}").catch(() => null),
  );
  things = {
    source: source.gives({ done: true }),
    receiver: receiver.url("/by-hand"),
    password: PASSWORD,
    warrants: { toVerify: toVerify.id, toSettle: toSettle.id },
    escalations: { toDecide: escalation.id },
    agents: { active: active.id, paused: paused.id },
    keys: { toRotate: await key(), toRevoke: await key() },
    sessions: { toEnd: (await made("sessions", "create", "--agent", active.id, "--ceiling", "1000000")).id },
    policies: {
      saved: (await client.get("/v1/console/policies", { as: await cookieOf(ada) })).body.data[0].id,
    },
    verifiers: { saved: (await made("verifiers", "create", ...ofOrganisation, ...clause)).id },
    schemas: { saved: schema.id },
    webhooks: { enabled: hook.data[0].id },
    deliveries: { delivered: hook.deliveries[0].id },
    purchases: { unknown: bought },
    people: { lowest: (await made("users", "create", ...ofOrganisation, ...person)).id },
    money: await moneyGoesOut(),
  };
  await client.post("/auth/session", { email: "target@example.com", password: PASSWORD });
  for (const [at, role] of ROLES.entries()) await linksAChat(await signsIn(role), ADAS_CHAT + 1 + at);
}

/** Part of what is owed is submitted, and a deposit is corrected by more than the threshold. */
async function moneyGoesOut(): Promise<Things["money"]> {
  const { data } = await holdfast.json("payouts", "submit", ...account(), "--payee", "Contoso");
  const deposited = async (amount: string, reference: string): Promise<string> =>
    (await holdfast.json("balances", "fund", ...account(), "--amount", amount, "--reference", reference)).id;
  const wrong = await deposited("9000000", "typed wrongly");
  const correction = await holdfast.json("balances", "correct", wrong, "--amount", "0", "--reason", "typo");
  expect([data.length, correction.status]).toEqual([1, "proposed"]);
  const deposit = await deposited("1000000", "typed rightly");
  return { payout: data[0].id, deposit, correction: correction.id, payee: "Seller" };
}

async function linksAChat(as: Credentials, chatId: number): Promise<void> {
  const path = "/console/settings/notices/chat";
  const browser = openConsole({ url: base }, as);
  const shown = await browser.post(path, { ...(await browser.formOn(path, path)), password: PASSWORD });
  const [, code = "none"] = /value="((?:[0-9A-Z]{4}-){2}[0-9A-Z]{4})"/.exec(shown.html) ?? [];
  await posts(updates.message(chatId, `/start ${code}`));
  expect((await botShows("sendMessage", chatId)).text).toContain("This chat is linked to");
}

const routes = consoleRoutes(false).filter(({ kind }) => kind !== "file");
const lineOfRoute = ({ method, path }: { method: string; path: string }) => `${method} ${path}`;
const pages = routes.filter(({ kind }) => kind === "page");
const needOf = (line: string): Role | "anybody" => {
  const need = ROLE_OF[line];
  if (need === undefined) throw new Error(`${line} has no line in ROLE_OF (test/support/console-roles.ts)`);
  return need;
};
const may = (role: Role, line: string): boolean => {
  const need = needOf(line);
  return need === "anybody" || roleIsAtLeast(role, need);
};

/** Where a page leads and what can be sent from it, as lines of the table of roles. */
const offeredOn = (page: Page): Promise<[method: string, address: string][]> =>
  page.evaluate(`[
    ...[...document.querySelectorAll("a[href^='/console'], a[href='/']")].map((link) => ["GET", link.getAttribute("href")]),
    ...[...document.querySelectorAll("form")].map((form) => [form.method.toUpperCase(), form.getAttribute("action")]),
    ...[...document.querySelectorAll("[formaction]")].map((button) => ["POST", button.getAttribute("formaction")]),
  ].filter(([, address]) => address !== null)`);

/** Offered to who has a passkey or a device, of a payment that nobody knows, and in the sandbox: none of it is there. */
const OFFERED_ELSEWHERE = [
  "POST /console/settings/notices/devices/remove",
  ...["POST /console/account/remove-passkey", "POST /console/purchases/:id/say/:verb"],
  "POST /console/welcome",
];

/** Each page shows what this role may do and nothing else; the other pages say why they do not show. */
async function theRoleSeesItsPages(role: Role) {
  // What a page shows is there without a script, and comes sooner.
  const page = await chromium.openWithoutScript();
  await signIn(page, base, credentialsOf(role));
  const offered = new Set<string>();
  const wrong: string[] = [];
  for (const { path } of pages) {
    for (const address of addressesOf(path, things)) {
      const response = await page.goto(base + address, { waitUntil: "domcontentloaded" });
      const title = await page.locator("h1").first().textContent();
      const isShown = response?.status() === 200 && title !== "You may not do that";
      if (isShown !== may(role, `GET ${path}`)) wrong.push(`${address}: ${response?.status()} ${title}`);
      if (!isShown) continue;
      for (const [method, to] of await offeredOn(page)) {
        const line = lineOf(method, to);
        offered.add(line);
        if (!may(role, line)) wrong.push(`${address} offers ${line}`);
      }
    }
  }
  expect([...new Set(wrong)]).toEqual([]);
  const missing = routes
    .filter(({ method, kind }) => method === "POST" && kind !== "open")
    .map(lineOfRoute)
    .filter((line) => may(role, line) && !offered.has(line) && !OFFERED_ELSEWHERE.includes(line));
  expect(missing).toEqual([]);
  await page.context().close();
}

/** The cookie of a new sign-in. */
async function signsIn(role: Role, mode = "live"): Promise<Credentials> {
  const { headers, text } = await client.post("/auth/session", {
    email: emailOf(role),
    password: PASSWORD,
    mode,
  });
  const cookie = headers.get("set-cookie")?.split(";")[0];
  if (cookie === undefined) throw new Error(`no sign-in: ${text}`);
  return { Cookie: cookie };
}

/** The cookies of a person of each role. */
const allSignIn = async (): Promise<Readonly<Record<Role, Credentials>>> => ({
  ...{ viewer: await signsIn("viewer"), operator: await signsIn("operator") },
  ...{ admin: await signsIn("admin"), owner: await signsIn("owner") },
});

const lowerThan = (role: Role) => ROLES.filter((other) => !roleIsAtLeast(other, role));

async function formsByHandAreRefused() {
  const forms = formsOf(things);
  const asked = routes.filter(({ kind }) => kind === "form" || kind === "trial").map(lineOfRoute);
  expect(Object.keys(forms).toSorted()).toEqual(asked.toSorted());
  const cookies = await allSignIn();
  for (const [line, { to, fields }] of Object.entries(forms)) {
    for (const role of lowerThan(needOf(line) as Role)) {
      const send = () => sendsForm(cookies[role], to, fields);
      // Already by the route: the form itself would show again with what was refused.
      await refuses(`${line} by ${role}`, send, "insufficient_role", "You may not do that");
    }
  }
}

async function operationsByHandAreRefused() {
  const [operations, cookies] = [operationsOf(things), await allSignIn()];
  const { paths } = (await client.get("/openapi.json")).body;
  const forPeople = Object.entries<Json>(paths).flatMap(([path, methods]) =>
    Object.entries<Json>(methods)
      .filter(([, { security = [] }]) => security.some((one: object) => "session" in one))
      .map(([method]) => `${method.toUpperCase()} ${path}`),
  );
  expect([...Object.keys(operations), ...OWN].toSorted()).toEqual(forPeople.toSorted());
  for (const [line, { role: need, to, body }] of Object.entries(operations)) {
    const [method = ""] = line.split(" ");
    for (const role of lowerThan(need)) {
      const as = cookies[role];
      const send = async () => {
        const { status, text } = await client.send(method, to, body, { as });
        return { status, said: text };
      };
      await refuses(`${line} by ${role}`, send, "insufficient_role");
    }
    // Without its Idempotency-Key and body it is refused for these, where the role is enough.
    const { status } = await client.send(method, to, undefined, { as: cookies[need], key: null });
    expect([line, status]).not.toEqual([line, 403]);
  }
}

/** Nobody manages somebody above them, an admin makes no owner, and the last owner stays. */
async function nobodyManagesThoseAbove() {
  const { data } = (await client.get("/v1/console/users", { as: await signsIn("owner") })).body;
  const idOf = (role: Role): string => data.find(({ email }: Json) => email === emailOf(role)).id;
  const admin = await signsIn("admin");
  const promoted = { name: "Mallory", email: "mallory@example.com", role: "owner" };
  for (const [to, fields] of [
    [`/console/people/${idOf("owner")}/role`, { role: "viewer" }],
    [`/console/people/${idOf("owner")}/remove`, {}],
    [`/console/people/${idOf("owner")}/reset-link`, {}],
    [`/console/people/${idOf("owner")}/sign-out`, {}],
    [`/console/people/${idOf("admin")}/role`, { role: "owner" }],
    [`/console/people/${idOf("operator")}/role`, { role: "admin" }],
    ["/console/people/new", promoted],
  ] as const)
    await refuses(`${to} by admin`, () => sendsForm(admin, to, fields));
  const owner = await signsIn("owner");
  const before = rowsNow();
  const last = await sendsForm(owner, `/console/people/${idOf("owner")}/role`, { role: "viewer" });
  expect([last.status, last.said]).toEqual([409, expect.stringContaining("last owner")]);
  expect(rowsNow()).toEqual(before);
}

/** What was refused to the others is done for the least role that may: nothing but the role was wrong with it. */
async function theSameFormsAreDoneForWhoMay() {
  for (const [line, { to, fields, answers = 303 }] of Object.entries(formsOf(things))) {
    const mode = line === "POST /console/welcome" ? "sandbox" : "live";
    const as = await signsIn(needOf(line) as Role, mode);
    const { status, said } = await until("it is not refused for want of time", async () => {
      const answer = await sendsForm(as, to, fields, mode);
      return !answer.said.includes("takes too long") && answer;
    });
    expect([line, status, status === answers ? "" : said]).toEqual([line, answers, ""]);
  }
}

async function theLedgerAgreesAndTheServerEnds() {
  expect(await server.end()).toBe(0);
  expect(await holdfast.json("audit")).toMatchObject({ ok: true, problems: [] });
  expect(problems).toEqual([]);
}

const steps: readonly (readonly [string, () => Promise<void>])[] = [
  ["the link that serve prints makes the organisation, and a first warrant is paid", firstRun],
  ["the link makes no other", theLinkIsUsedUp],
  ["in the sandbox an escalation is decided in a linked chat", anEscalationIsDecidedInAChat],
  ["in live, money comes in", moneyComesIn],
  ["an agent gets a budget and a key", anAgentGetsABudget],
  ["with it the agent opens within the budget, and nothing beyond", theAgentSpendsWithinIt],
  ["a warrant is opened by the form, and verified", aWarrantIsOpenedByTheForm],
  ["a part of one is paid by the slider, to the unit", aPartIsPaidByTheSlider],
  ["a policy is drafted, back-tested and saved, and decides", aPolicyIsDraftedAndSaved],
  ["an escalation above the threshold is decided with a passkey", anEscalationIsSignedWithAPasskey],
  ["a webhook is sent again, and its signature holds", aWebhookIsSentAgain],
  ["somebody is invited, joins, is demoted, and is refused", somebodyIsInvitedAndDemoted],
  ["a push notice opens the escalation", aPushNoticeOpensTheEscalation],
  ["people of every role join", theOthersJoin],
  ["the inbox is decided by the keyboard", theInboxIsDecidedByTheKeyboard],
  ["an admin decides on a phone", anAdminDecidesOnAPhone],
  ["without a script one signs in and opens a warrant", withoutAScriptAWarrantIsOpened],
  ["signing out everywhere ends the other browser and its stream", signingOutEverywhereEndsTheOtherBrowser],
  ["there is something of everything", thingsAreMade],
  ...ROLES.map(
    (role) =>
      [`each page shows what a person who is ${role} may do`, () => theRoleSeesItsPages(role)] as const,
  ),
  ["forms that a role may not send are refused by hand", formsByHandAreRefused],
  ["what it may not call is refused too", operationsByHandAreRefused],
  ["nobody manages those above", nobodyManagesThoseAbove],
  ["the same forms are done for who may", theSameFormsAreDoneForWhoMay],
  ["the ledger agrees, no page broke its policy, and the server ends", theLedgerAgreesAndTheServerEnds],
];
for (const [name, step] of steps) test(name, step, WALK_MS);
