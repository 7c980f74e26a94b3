/**
 * `bun run browser`: money out, in headless Chromium: what was released is owed, submitted, marked as paid, and comes back; above
 * the threshold it is signed with a passkey; a correction is proposed by one person and approved by another.
 */
import { beforeAll, expect, test } from "bun:test";
import type { Page } from "playwright-core";
import { MACHINE } from "../../src/services/admin/authority.ts";
import { fundBalance } from "../../src/services/admin/balances.ts";
import { openAtConsole } from "../support/at-console.ts";
import { expectCareOn, WALK_MS } from "../support/chromium.ts";
import { must, PASSWORD } from "../support/organisations.ts";
import { setThreshold } from "../support/passkeys.ts";

const PAYEES = "/console/money/payees";
const PAYOUTS = "/console/money/payouts";
const SUBMIT = `${PAYOUTS}/submit`;
const CORRECTIONS = "/console/money/corrections";
/** More than a page of the list has. */
const MANY = 40;

const { service, home, base, chromium, page, problems, signIn, expectCare } = await openAtConsole();
beforeAll(() => signIn(page, "admin", "/console"), WALK_MS);

async function release(payee: string, amount: string): Promise<void> {
  const { id } = await service.opened(home, { payee, amount });
  const reply = await service.post(`/v1/warrants/${id}/release`, {}, { as: home.people.operator.as });
  expect(reply.status).toBe(200);
}
const payouts = () =>
  service.ctx.reader.payouts.list({ organisationId: home.id, mode: "live" }, null, null, 1_000);

async function addPasskey(of: Page): Promise<void> {
  await of.goto(`${base}/console/account`);
  await of.fill("#passkey_name", "Laptop");
  await of.fill("#passkey_password", PASSWORD);
  await Promise.all([of.waitForEvent("load"), of.click("text=Add a passkey")]);
  await of.getByText("Laptop").first().waitFor();
}

test(
  "what was released is owed, submitted, marked as paid, and comes back",
  async () => {
    await release("Northwind", "2500000");
    await page.getByText("Owed to payees").waitFor();
    await page.getByText("2.50 USDC").first().waitFor();
    await page.click("nav >> text=Money");
    await page.getByRole("link", { name: "Payees" }).click();
    await page.getByRole("link", { name: "Submit a payout" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByText("Submit a payout?").waitFor();
    await dialog.getByRole("button", { name: "Submit" }).click();
    await page.getByText("Submitted. Pay them by your own means").waitFor();
    await expectCare(PAYOUTS);
    await page.getByRole("link", { name: "Mark as paid" }).click();
    await dialog.getByLabel("Reference").fill("wire 17");
    await dialog.getByRole("button", { name: "Mark as paid" }).dblclick();
    await page.getByText("The payout is marked as paid.").waitFor();
    await page.getByRole("link", { name: "It came back" }).click();
    await dialog.getByLabel("Reason").fill("account closed");
    await dialog.getByRole("button", { name: "It came back" }).click();
    await page.getByText("Its amount is owed again.").waitFor();
    await page.goto(`${base}${PAYEES}`);
    await page.getByRole("link", { name: "Submit all that is owed" }).click();
    await page.getByText("Submit all that is owed?").waitFor();
    await page.getByRole("button", { name: "Submit" }).click();
    await page.getByText("Submitted. Pay them by your own means").waitFor();
    expect(payouts().map(({ status, amount }) => [status, amount])).toEqual([
      ["submitted", 2_500_000n],
      ["failed", 2_500_000n],
    ]);
  },
  WALK_MS,
);

test(
  "above the threshold a passkey signs what the page shows; where something else is owed by then it is shown anew",
  async () => {
    const name = (index: number) => `Supplier ${index} of ${"long-names-".repeat(20)}`.slice(0, 200);
    for (let index = 0; index < MANY; index++) await release(name(index), "1000001");
    await addPasskey(page);
    await setThreshold(service, home, "2000000");
    await expectCare(PAYEES);
    await expectCare(SUBMIT);
    await page.goto(`${base}${SUBMIT}`);
    const list = page.getByRole("region", { name: "What is submitted" });
    expect(await list.getByRole("row").count()).toBe(1 + MANY);
    expect(await list.textContent()).toContain(name(MANY - 1));
    await page.getByText("40.00004 USDC").waitFor();
    const before = payouts().length;
    await setThreshold(service, home, null);
    await release(name(0), "5");
    await setThreshold(service, home, "2000000");
    await page.getByRole("button", { name: "Submit with your passkey" }).click();
    await page.getByText("What is owed has changed since it was shown: nothing was submitted.").waitFor();
    await page.getByText("40.000045 USDC").waitFor();
    expect(payouts()).toHaveLength(before);
    await page.getByRole("button", { name: "Submit with your passkey" }).click();
    await page.getByText("Submitted. Pay them by your own means").waitFor();
    expect(payouts()).toHaveLength(before + MANY);
    await expectCare(PAYOUTS);
    await expectCare(`${PAYOUTS}?status=submitted`);
  },
  WALK_MS,
);

test(
  "who has no passkey reads why nothing is submitted, on the page and without a script",
  async () => {
    await release("Northwind", "1000000");
    await setThreshold(service, home, "999999");
    const other = await chromium.openPage();
    await signIn(other, "owner", SUBMIT);
    await other.getByRole("button", { name: "Submit with your passkey" }).click();
    await other.getByText("You have no passkey that counts for the threshold.").waitFor();
    await expectCareOn(other, "/no-passkey");
    const plain = await chromium.openWithoutScript();
    await plain.goto(`${base}/console/sign-in?next=${encodeURIComponent(SUBMIT)}`);
    await plain.fill("#email", home.people.admin.email);
    await plain.fill("#password", PASSWORD);
    await plain.click("button[type=submit]");
    await plain.getByRole("button", { name: "Submit with your passkey" }).click();
    await plain.getByText("it needs a fresh signature by your passkey").waitFor();
    for (const one of [plain, other]) await one.context().close();
    await setThreshold(service, home, null);
  },
  WALK_MS,
);

test(
  "a correction is proposed by one person, and approved by another with a passkey",
  async () => {
    const input = { organisation_id: home.id, mode: "live", amount: "5000000", reference: "wire 1" } as const;
    must(await fundBalance(service.ctx, MACHINE, input));
    await setThreshold(service, home, "1000000");
    await page.goto(`${base}/console/money`);
    await page.getByRole("link", { name: "Correct it" }).first().click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("What it really brought").fill("0");
    await dialog.getByLabel("Reason").fill("It never came. ".repeat(20).slice(0, 200));
    await dialog.getByRole("button", { name: "Correct it" }).click();
    await page.getByText("The correction waits: another admin approves it.").waitFor();
    await expectCare(CORRECTIONS);
    await page.getByRole("link", { name: "Approve" }).click();
    await dialog.getByRole("button", { name: "Approve with your passkey" }).click();
    await page.getByText("You proposed this correction; a second person approves it.").waitFor();
    const owner = await chromium.openPage();
    await signIn(owner, "owner", "/console");
    await addPasskey(owner);
    await owner.goto(`${base}${CORRECTIONS}`);
    await owner.getByRole("link", { name: "Approve" }).click();
    const before = service.balance(home).available;
    await owner.getByRole("dialog").getByRole("button", { name: "Approve with your passkey" }).click();
    await owner.getByText("The correction is recorded.").waitFor();
    expect(service.balance(home).available).toBe(before - 5_000_000n);
    await expectCare(CORRECTIONS);
    await owner.context().close();
    await setThreshold(service, home, null);
  },
  WALK_MS,
);

test("no page broke its own policy, and no script failed", () => {
  expect(problems).toEqual([]);
});
