/**
 * Money in and out, as an admin sees it in headless Chromium: where to pay in, the deposit, what is owed, a payout that the server
 * sends by itself, one that a passkey releases, and the proof that what is owed is counted. `EXECUTABLE` names the program.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { CHROMIUM, expectCareOf, openChromium, signIn } from "../../support/chromium.ts";
import { createClient } from "../../support/client.ts";
import { type Source, startSource } from "../../support/source.ts";
import { until } from "../../support/until.ts";
import { NETWORK_V2 } from "../chain.ts";
import {
  ADMIN,
  CONFIRMATIONS,
  type InstalledTreasury,
  installTreasury,
  PAYOUT_MAX,
  promiseOf,
  TREASURY,
  WALK_MS,
} from "./installed-treasury.ts";

const SMALL = { payee: `0x${"ab".repeat(20)}`, amount: 1_234_567n, shown: "1.234567 USDC" };
const LARGE = { payee: `0x${"cd".repeat(20)}`, amount: PAYOUT_MAX + 500_000n, shown: "2.50 USDC" };
const DEPOSIT = 5_000_001n;
/** What the server does once a minute, on a slow machine. */
const RUN_MS = 150_000;
const MONEY = "/console/money";
const PAYEES = `${MONEY}/payees`;
const PAYOUTS = `${MONEY}/payouts`;
const SOLVENCY = `${MONEY}/solvency`;

const isHere = existsSync(CHROMIUM);
if (!isHere) console.warn(`== no Chromium at ${CHROMIUM}: money in and out is not tried in a browser`);

describe.skipIf(!isHere)("in the browser", () => {
  const problems: string[] = [];
  let treasury: InstalledTreasury;
  let source: Source;
  let chromium: Awaited<ReturnType<typeof openChromium>>;
  let page: Page;
  let base: string;

  beforeAll(async () => {
    source = startSource();
    treasury = await installTreasury();
    ({ base } = treasury.server);
    const { token, holdfast, account } = treasury;
    const sender = ["--address", token.customer, "--note", "our wallet"];
    await holdfast.run("deposits", "senders", "add", ...account, ...sender);
    await treasury.chain.mine(CONFIRMATIONS);
    await until("the treasury is watched", treasury.isWatched);
    chromium = await openChromium(problems);
    page = await chromium.openPage();
    await signIn(page, base, ADMIN);
    await page.click("text=Sandbox");
    await page.getByText("SANDBOX", { exact: true }).waitFor();
    await page.goto(`${base}/console/account`);
    await page.fill("#passkey_name", "Laptop");
    await page.fill("#passkey_password", ADMIN.password);
    await Promise.all([page.waitForEvent("load"), page.click("text=Add a passkey")]);
    await page.getByText("Laptop").first().waitFor();
  }, WALK_MS);
  afterAll(async () => {
    await chromium?.close();
    await treasury?.close();
    source?.stop();
  });

  const rowOf = (...words: readonly string[]) =>
    words.reduce((rows, word) => rows.filter({ hasText: word }), page.getByRole("row"));
  const tile = (words: string, amount: string) =>
    page.locator(".tile").filter({ hasText: words }).filter({ hasText: amount }).waitFor();
  const expectCare = (path: string, name: string) => expectCareOf(page, base, path, `/treasury/${name}`);

  /** Expects the page of payouts, which is open, to show by itself that a payout is sent; and, once there are blocks, paid. */
  async function expectPaid({ payee, amount, shown }: typeof SMALL): Promise<void> {
    const { chain, token } = treasury;
    await rowOf(payee, shown, "Submitted, on a chain", "It waits for confirmations").waitFor({
      timeout: RUN_MS,
    });
    const sent = await until("it is on the chain", async () => {
      const transfers = await token.sentBy(TREASURY);
      return transfers.find(({ to }) => to.toLowerCase() === payee) ?? null;
    });
    expect(sent.value).toBe(amount);
    await rowOf(payee, sent.hash).waitFor();
    await expectCare(PAYOUTS, `submitted-${amount}`);
    await chain.mine(CONFIRMATIONS);
    await rowOf(payee, shown, "Paid, on a chain", `${NETWORK_V2}:${sent.hash}`).waitFor();
    await expectCare(PAYOUTS, `paid-${amount}`);
  }

  test(
    "the page says where to pay in, and what a registered address sends there is a deposit",
    async () => {
      const { chain, token } = treasury;
      await page.goto(base + MONEY);
      for (const words of [TREASURY, token.address, NETWORK_V2, token.customer, "our wallet"])
        await page.getByText(words, { exact: false }).first().waitFor();
      await expectCare(MONEY, "pay-in");
      const hash = await token.pay(TREASURY, DEPOSIT);
      await chain.mine(CONFIRMATIONS);
      await rowOf("5.000001 USDC", `${NETWORK_V2}:${hash}/0`).waitFor();
      await expectCare(MONEY, "deposited");
    },
    WALK_MS,
  );

  test(
    "what an agent's warrants release is owed, on the overview and to whom",
    async () => {
      const client = createClient(fetch, base);
      for (const { payee, amount } of [SMALL, LARGE]) {
        const { as } = treasury;
        const opened = await client.post("/v1/warrants", promiseOf(payee, amount), { as });
        expect(opened.status).toBe(201);
        const url = source.gives({});
        const path = `/v1/warrants/${opened.body.id}/verify`;
        expect((await client.post(path, { source_url: url }, { as })).body.state).toBe("released");
      }
      await page.goto(`${base}/console`);
      await tile("Available", "1.265434 USDC");
      await tile("Owed to payees", "3.734567 USDC");
      await page.goto(base + PAYEES);
      for (const { payee, shown } of [SMALL, LARGE]) await rowOf(payee, shown).waitFor();
      await expectCare(PAYEES, "owed");
    },
    WALK_MS,
  );

  test(
    "what is within the limits is sent by the server, and what is above them says so",
    async () => {
      await page.goto(base + PAYOUTS);
      await treasury.giveGas();
      await expectPaid(SMALL);
      await page.goto(base + PAYEES);
      await rowOf(
        LARGE.payee,
        "It is above the limit for one payout: an admin releases it in the console, with a passkey (2.00 USDC).",
      ).waitFor();
      await expectCare(PAYEES, "above-the-limit");
    },
    WALK_MS,
  );

  test(
    "a signed statement counts what is owed, and the proof of it is verified",
    async () => {
      const { holdfast } = treasury;
      await holdfast.run("solvency", "sign");
      await until("a checkpoint has it", async () => {
        const { data } = await holdfast.json("solvency", "list");
        return data[0].checkpoint !== null;
      });
      await page.goto(base + SOLVENCY);
      await rowOf("1.265434 USDC", LARGE.shown, "3.765434 USDC").waitFor();
      await expectCare(SOLVENCY, "solvency");
      const jwks = join(holdfast.folder, "jwks.json");
      await Bun.write(jwks, await fetch(`${base}/.well-known/jwks.json`));
      const proved = async (payee: string): Promise<string> => {
        await page.fill("#payee", payee);
        const saved = page.waitForEvent("download");
        await page.click("text=Save the proof");
        const proof = join(holdfast.folder, "proof.json");
        await (await saved).saveAs(proof);
        return holdfast.run("solvency", "verify", proof, "--jwks", jwks);
      };
      expect(await proved("")).toMatch(/The proof holds[\s\S]*1\.265434 USDC to org_/);
      expect(await proved(LARGE.payee)).toContain(`${LARGE.shown} to ${LARGE.payee}`);
    },
    WALK_MS,
  );

  test(
    "what is above the limit is released with a passkey, sent and paid; chain and ledger agree to the unit",
    async () => {
      const { chain, token, holdfast } = treasury;
      await page.goto(base + PAYEES);
      await rowOf(LARGE.payee).getByRole("link", { name: "Submit a payout" }).click();
      const dialog = page.getByRole("dialog");
      await dialog.getByText("A wallet sends these to addresses on its chain").waitFor();
      await expectCare(`${PAYOUTS}/submit?payee=${LARGE.payee}&asset=USDC`, "submit");
      await dialog.getByRole("button", { name: "Submit with your passkey" }).click();
      await page.getByText("is sent by the next run, and shows here then").waitFor();
      await expectCare(page.url().slice(base.length), "released");
      await expectPaid(LARGE);

      for (const { payee, amount } of [SMALL, LARGE]) expect(await token.balanceOf(payee)).toBe(amount);
      const left = DEPOSIT - SMALL.amount - LARGE.amount;
      expect(await token.balanceOf(TREASURY)).toBe(left);
      expect(await treasury.balance()).toMatchObject({
        ...{ available: `${left}`, held: "0", paid: `${SMALL.amount + LARGE.amount}` },
      });
      await chain.mine(CONFIRMATIONS);
      const { data } = await holdfast.json("solvency");
      expect(data).toMatchObject([{ owes: `${left}`, holds: `${left}`, difference: "0" }]);
      expect((await token.sentBy(TREASURY)).map(({ value }) => value)).toEqual([SMALL.amount, LARGE.amount]);
      await page.goto(`${base}/console`);
      await tile("Owed to payees", "0.00 USDC");
      await expectCare("/console", "overview");
      await holdfast.run("audit");
    },
    WALK_MS,
  );

  test("no page broke its own policy, and no script failed", () => {
    expect(problems).toEqual([]);
  });
});
