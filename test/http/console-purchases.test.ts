import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { reconcilePurchases } from "../../src/jobs/purchases.ts";
import type { Credentials } from "../support/client.ts";
import { consoleOfShell } from "../support/console.ts";
import { asksExact, givesAway, type Market, openMarket, SELLER_URL, silence } from "../support/market.ts";
import { noContradiction, noFault } from "../support/no-fault.ts";
import type { TestOrganisation } from "../support/organisations.ts";
import { type ShellService, startTestShell } from "../support/server.ts";

/** The console's pages of purchases: what is known of a payment, and what an admin says of it. */

let market: Market;
let service: ShellService;
let home: TestOrganisation;
let browse: ReturnType<typeof consoleOfShell>;
beforeEach(async () => {
  market = openMarket();
  service = startTestShell({ x402: market.x402 });
  home = await service.organisation();
  browse = consoleOfShell(service);
});
afterEach(() => service.close());

const SPEC = { clauses: [{ kind: "json.jsonpath", path: "$.ok", equals: true }] };
const pay = async (as = home.sandbox.as) =>
  (await service.post("/v1/x402/pay", { url: SELLER_URL, max_amount: "1000", spec: SPEC }, { as })).body;
const purchases = (mode: "sandbox" | "live" = "sandbox") =>
  service.ctx.reader.purchases.list({ organisationId: home.id, mode }, null, 1_000);
const as = (role: "viewer" | "operator" | "admin"): Promise<Credentials> =>
  home.signIn(home.people[role], "sandbox");

/** A purchase of which nobody knows whether it was paid, at a time at which a person may say it. */
async function unknown(): Promise<string> {
  market.first = asksExact("100");
  market.paid = () => silence(true);
  market.findings = ["none"];
  const { reason_codes } = await pay();
  expect(reason_codes).toContain("payment_unknown");
  service.clock.now += 2 * 3_600_000;
  return purchases()[0]?.id ?? "";
}

async function say(id: string, verb: string, note = "seen in the explorer") {
  const browser = browse(await as("admin"));
  const path = `/console/purchases/${id}/say/${verb}`;
  return browser.post(path, { ...(await browser.formOn(path, path)), note });
}

test("are listed in pages, each with its price and payment", async () => {
  for (let i = 0; i < 30; i++) await pay();
  market.first = givesAway("free");
  await pay();
  const browser = browse(await as("viewer"));
  const first = await browser.get("/console/purchases");
  const ids = (html: string) =>
    [...html.matchAll(/href="\/console\/purchases\/(pur_\w+)"/g)].map(([, id]) => id);
  const next = /href="([^"]+)" rel="next"/.exec(first.html)?.[1] ?? "";
  const second = await browser.get(next);
  expect([ids(first.html).length, ids(second.html).length]).toEqual([25, 6]);
  expect(new Set([...ids(first.html), ...ids(second.html)]).size).toBe(31);
  expect(first.text).toContain("0.0001 USDC");
  expect(first.text).toContain("nothing held");
  expect((await browse(home.people.viewer.as).get("/console/purchases")).text).toContain(
    "Nothing has been bought yet",
  );
});

test("what is known shows to a viewer, and what to say of it to an admin alone", async () => {
  const id = await unknown();
  const path = `/console/purchases/${id}`;
  const viewer = await browse(await as("viewer")).get(path);
  expect(viewer.text).toContain("It is not known whether the seller was paid, so the amount stays held.");
  expect(viewer.text).toContain("Known not known yet");
  expect(viewer.html).not.toContain("/say/");
  const admin = await browse(await as("admin")).get(path);
  expect(admin.html).toContain(`${path}/say/paid`);
  expect(admin.html).toContain(`${path}/say/unpaid`);
  expect(admin.html).not.toContain(`${path}/say/acknowledge`);
});

test("another organisation's is not there, nor the other mode's", async () => {
  const id = await unknown();
  const other = await service.organisation();
  const theirs = browse(await other.signIn(other.people.admin, "sandbox"));
  const paths = ["", "/say/paid", "/say/acknowledge"].map((end) => `/console/purchases/${id}${end}`);
  for (const path of paths) {
    expect((await theirs.get(path)).status).toBe(404);
    expect((await browse(home.people.admin.as).get(path)).status).toBe(404);
  }
  const sent = await theirs.post(paths[1] ?? "", { _key: "k", _mode: "sandbox" });
  expect([sent.status, purchases()[0]?.known]).toEqual([404, "unknown"]);
});

describe("an admin says", () => {
  test("that it was not paid: the confirmation says what returns, and the hold returns, once", async () => {
    const id = await unknown();
    const path = `/console/purchases/${id}/say/unpaid`;
    const browser = browse(await as("admin"));
    const { text } = await browser.get(path);
    expect(text).toContain("0.0001 USDC returns to available at once, and the warrant is refunded.");
    expect(text).toContain("This cannot be undone.");
    const fields = { ...(await browser.formOn(path, path)), note: "not in the explorer" };
    const replies = await Promise.all([browser.post(path, fields), browser.post(path, fields)]);
    expect(replies.map(({ to }) => to)).toEqual(Array(2).fill(`/console/purchases/${id}?done=unpaid`));
    expect(service.balance(home, "sandbox")).toMatchObject({ held: 0n, paid: 0n });
    expect(purchases()[0]).toMatchObject({ known: "unpaid", knownBy: "person" });
    const { body } = await service.get("/v1/console/audit-log", { as: await as("admin") });
    expect(body.data.find((one: { action: string }) => one.action === "purchase.resolved")).toMatchObject({
      ...{ subject: id, actor: { kind: "user", id: home.people.admin.id } },
    });
    expect((await browser.get(`/console/purchases/${id}?done=unpaid`)).text).toContain(
      "The hold has returned.",
    );
  });

  test("that it was paid: the amount stays held, and can only be released", async () => {
    const id = await unknown();
    const reply = await say(id, "paid");
    expect(reply.to).toBe(`/console/purchases/${id}?done=paid`);
    expect(service.balance(home, "sandbox").held).toBe(100n);
    expect(purchases()[0]).toMatchObject({ known: "paid", knownBy: "person" });
  });

  test("it too early: the page says from when on", async () => {
    market.first = asksExact("100");
    market.paid = () => silence(true);
    await pay();
    const id = purchases()[0]?.id ?? "";
    const page = await say(id, "unpaid", "too early");
    expect([page.status, page.text]).toEqual([
      409,
      expect.stringContaining("The seller may still have the payment taken until"),
    ]);
    expect(page.html).toContain('value="too early"');
    expect(purchases()[0]?.known).toBe("unknown");
  });

  test("that they know of a contradiction, and nothing moves", async () => {
    const id = await unknown();
    await say(id, "unpaid");
    const none = await say(id, "acknowledge");
    expect([none.status, none.text]).toEqual([
      409,
      expect.stringContaining("No chain contradicts what is known of its payment."),
    ]);
    market.findings = ["used"];
    service.clock.now += 3_600_000;
    await reconcilePurchases(service.ctx, noFault, () => {});
    const path = `/console/purchases/${id}`;
    const browser = browse(await as("admin"));
    const page = await browser.get(path);
    expect(page.text).toContain("A person said that the seller was not paid; the chain says: paid.");
    expect((await browser.get("/console/purchases")).text).toContain("The chain contradicts");
    expect(page.html).toContain(`${path}/say/acknowledge`);
    const before = service.balance(home, "sandbox");
    expect((await say(id, "acknowledge", "sent back")).to).toBe(`${path}?done=acknowledge`);
    expect(service.balance(home, "sandbox")).toEqual(before);
    const after = await browser.get(path);
    expect(after.html).not.toContain("/say/acknowledge");
    expect((await browser.get("/console/purchases")).text).not.toContain("The chain contradicts");
  });

  test.each(["release", "constructor", "toString"])("nothing as %p", async (verb) => {
    const id = await unknown();
    expect((await browse(await as("admin")).get(`/console/purchases/${id}/say/${verb}`)).status).toBe(404);
  });

  test("nothing that a form of another page could carry", async () => {
    const id = await unknown();
    const reply = await say(id, "paid", "a\u202eb");
    expect([reply.status, purchases()[0]?.known]).toEqual([400, "unknown"]);
    expect(reply.html).toContain('id="note-problem"');
  });
});

test("no contradiction is noted where nothing was said", async () => {
  await unknown();
  await reconcilePurchases(service.ctx, noFault, noContradiction);
  expect(purchases()[0]?.chainSaid).toBeNull();
});
