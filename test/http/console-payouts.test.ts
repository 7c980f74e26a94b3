import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createStatementFiles } from "../../src/console/pages/statements.tsx";
import type { Download, Visit } from "../../src/console/route.ts";
import type { Treasury } from "../../src/core/treasury.ts";
import { chainOfMode } from "../../src/core/x402/chains.ts";
import { MACHINE } from "../../src/services/admin/authority.ts";
import { fundBalance } from "../../src/services/admin/balances.ts";
import { setPasskeyThreshold } from "../../src/services/admin/switches.ts";
import { keepRailStates } from "../../src/services/rails/states.ts";
import { openConsole } from "../support/console.ts";
import { must, type TestOrganisation } from "../support/organisations.ts";
import { type Service, startTestServer } from "../support/server.ts";

/** The console's pages of payees, payouts and corrections. */

let service: Service;
beforeAll(async () => {
  service = await startTestServer();
});
afterAll(() => service?.close());

const PAYEES = "/console/money/payees";
const PAYOUTS = "/console/money/payouts";
const SUBMIT = `${PAYOUTS}/submit`;
const END = `${PAYOUTS}/end`;
const CORRECTIONS = "/console/money/corrections";

async function released(of: TestOrganisation, payee: string, amount: string): Promise<void> {
  const { id } = await service.opened(of, { payee, amount });
  const release = await service.post(`/v1/warrants/${id}/release`, {}, { as: of.people.operator.as });
  expect(release.status).toBe(200);
}
const ADDRESS = `0x${"a1".repeat(20)}`;
const TREASURY: Treasury = {
  ...{ mode: "live", chainId: chainOfMode("live", 8_453)!, token: `0x${"ab".repeat(20)}`, asset: "USDC" },
  ...{ address: `0x${"cd".repeat(20)}`, limits: { payoutMax: 1n, dayMax: 1n } },
};
const threshold = (of: TestOrganisation, amount: string) =>
  setPasskeyThreshold(service.ctx, MACHINE, { organisation_id: of.id, amount }).then(must);

describe("payouts", () => {
  test("from what is owed to what is paid, in the pages alone", async () => {
    const home = await service.organisation(10_000_000n);
    await released(home, "Acme <1>", "1500000");
    await released(home, "other", "500000");
    const overview = await openConsole(service, home.people.viewer.as).get("/console");
    expect(overview.text).toContain("Owed to payees 2.00 USDC");
    const viewer = await openConsole(service, home.people.viewer.as).get(PAYEES);
    expect(viewer.html).toContain("Acme &lt;1&gt;");
    expect(viewer.html).not.toContain(SUBMIT);

    const browser = openConsole(service, home.people.admin.as);
    const one = `${SUBMIT}?${new URLSearchParams({ payee: "Acme <1>", asset: "USDC" })}`;
    const fields = await browser.formOn(one, SUBMIT);
    expect(fields).toMatchObject({ payee: "Acme &lt;1&gt;", asset: "USDC" });
    const named = { ...fields, payee: "Acme <1>" };
    const sent = await Promise.all([browser.post(SUBMIT, named), browser.post(SUBMIT, named)]);
    expect(sent.map(({ to }) => to)).toEqual([`${PAYOUTS}?done=submitted`, `${PAYOUTS}?done=submitted`]);
    expect((await browser.get(PAYEES)).text).toMatch(/Acme &lt;1&gt; 0\.00 USDC 1\.50 USDC 0\.00 USDC/);
    const page = await browser.get(PAYOUTS);
    const ending = /href="([^"]*as=paid)"/.exec(page.html)![1]!.replaceAll("&amp;", "&");
    const form = await browser.formOn(ending, END);
    const refused = await browser.post(END, { ...form, reference: " " });
    expect([refused.status, refused.html]).toEqual([400, expect.stringContaining('id="reference-problem"')]);
    const paid = await browser.post(END, { ...(await browser.formOn(ending, END)), reference: "wire 17" });
    expect([paid.status, paid.to]).toEqual([303, `${PAYOUTS}?done=paid`]);
    expect((await browser.get(`${PAYOUTS}?status=paid`)).text).toContain(
      "Acme &lt;1&gt; 1.50 USDC Paid wire 17",
    );
    expect((await browser.get(`${PAYOUTS}?status=submitted`)).text).toContain("No payout here");

    const back = ending.replace("as=paid", "as=returned");
    const returned = await browser.post(END, { ...(await browser.formOn(back, END)), reason: "closed" });
    expect(returned.to).toBe(`${PAYOUTS}?done=failed`);
    const again = await browser.post(SUBMIT, await browser.formOn(SUBMIT, SUBMIT));
    expect(again.to).toBe(`${PAYOUTS}?done=submitted`);
    expect((await browser.get(PAYEES)).text).toMatch(
      /Acme &lt;1&gt; 0\.00 USDC 1\.50 USDC[\s\S]*other 0\.00 USDC 0\.50 USDC/,
    );
    const late = await browser.post(SUBMIT, { ...named, _key: "another" });
    expect(late.to).toBe(`${PAYOUTS}?done=none`);
    const nothing = await browser.get(SUBMIT);
    expect(nothing.text).toContain("Nothing is owed, so there is nothing to submit.");
    expect(nothing.html).not.toContain(`action="${SUBMIT}"`);
  });

  test("on a chain say so and why they wait; a person signs what a wallet is to send, or pays it otherwise", async () => {
    const home = await service.organisation(10_000_000n);
    await keepRailStates({ ...service.ctx, treasuries: [TREASURY] });
    await released(home, ADDRESS, "1500000");
    await released(home, "acme", "500000");
    const browser = openConsole(service, home.people.admin.as);
    const page = await browser.get(PAYEES);
    expect(page.text).toContain(`${ADDRESS} The next run sends it.`);
    expect(page.text).toContain("acme It is no address of a chain: pay it by your own means");
    const one = `${SUBMIT}?${new URLSearchParams({ payee: ADDRESS, asset: "USDC" })}`;
    expect((await browser.get(one)).html).toContain('data-signed="/auth/passkey/payouts/challenge"');
    const before = service.allRows(home);
    const refused = await browser.post(SUBMIT, { ...(await browser.formOn(one, SUBMIT)), payee: ADDRESS });
    expect([refused.status, service.allRows(home)]).toEqual([403, before]);
    const own = await browser.formOn(`${one}&${new URLSearchParams({ rail: "book" })}`, SUBMIT);
    const sent = await browser.post(SUBMIT, { ...own, payee: ADDRESS });
    expect(sent.to).toBe(`${PAYOUTS}?done=submitted`);
    expect((await browser.get(PAYOUTS)).text).toContain(`${ADDRESS} 1.50 USDC Submitted`);
  });

  test("are shown whole before they are submitted: every payee, every amount, and the sums", async () => {
    const home = await service.organisation(10_000_000n);
    const long = `Acme ${"<b>".repeat(60)}`;
    await released(home, long, "1500000");
    await released(home, "other", "500000");
    const page = await openConsole(service, home.people.admin.as).get(SUBMIT);
    expect(page.html).toContain(long.replaceAll("<", "&lt;").replaceAll(">", "&gt;"));
    expect(page.text).toContain("other 0.50 USDC Payouts 2 Together 2.00 USDC");
    const one = `${SUBMIT}?${new URLSearchParams({ payee: "other", asset: "USDC" })}`;
    const single = await openConsole(service, home.people.admin.as).get(one);
    expect(single.text).toContain("other 0.50 USDC Payouts 1 Together 0.50 USDC");
    expect(single.html).not.toContain("Acme");
  });

  test("of another organisation are not there", async () => {
    const [home, other] = [await service.organisation(1_000_000n), await service.organisation(1_000_000n)];
    await released(home, "acme", "1000");
    const own = openConsole(service, home.people.admin.as);
    await own.post(SUBMIT, await own.formOn(SUBMIT, SUBMIT));
    const ending = /href="([^"]*as=paid)"/.exec((await own.get(PAYOUTS)).html)![1]!.replaceAll("&amp;", "&");
    const theirs = openConsole(service, other.people.admin.as);
    expect((await theirs.get(ending)).status).toBe(404);
    const form = await own.formOn(ending, END);
    expect((await theirs.post(END, { ...form, reference: "r" })).status).toBe(404);
    expect((await theirs.get(PAYEES)).text).not.toContain("acme");
  });
});

describe("a statement", () => {
  const FILE = "/console/money/statements/file";

  test("is saved as a file of the days that were asked for, and of one's own mode", async () => {
    const home = await service.organisation(1_000_000n);
    await released(home, "=acme", "1000");
    const browser = openConsole(service, home.people.viewer.as);
    expect((await browser.get("/console/money/statements")).html).toContain(`action="${FILE}"`);
    const csv = await service.get(`${FILE}?format=csv`, { as: home.people.viewer.as });
    expect(csv.headers.get("content-type")).toStartWith("text/csv");
    expect(csv.headers.get("content-disposition")).toBe('attachment; filename="holdfast-live-statement.csv"');
    const [header, ...lines] = csv.text.split("\r\n").slice(0, -1);
    expect(header).toStartWith("recorded_at,asset,kind,cause_id,payee,");
    expect(lines.map((line) => line.split(",").slice(2, 3)[0])).toEqual(["deposit", "hold", "settlement"]);
    expect(lines.at(-1)).toEndWith(",'=acme,0,-1000,1000,1000,0,999000,0,1000,1000,0");
    const today = new Date(service.ctx.now()).toISOString().slice(0, 10);
    for (const [query, count] of [
      [`from=${today}`, 3],
      [`until=${today}`, 3],
      ["until=2001-01-01", 0],
    ] as const) {
      const { text } = await service.get(`${FILE}?format=jsonl&${query}`, { as: home.people.viewer.as });
      expect([query, text.split("\n").length - 1]).toEqual([query, count]);
    }
    const days = ["from=today", "until=2026-13-01", "until=2026-02-30", "until=9999-12-31"];
    for (const wrong of [...days.map((day) => `format=csv&${day}`), "format=pdf"])
      expect([wrong, (await browser.get(`${FILE}?${wrong}`)).status]).toEqual([wrong, 400]);
  });
});

describe("files under way", () => {
  let now = 0;
  /** Opens files of people who need only be named, in an organisation that is there. */
  const openedBy =
    (openFile: ReturnType<typeof createStatementFiles>) => (of: TestOrganisation, userId: string) =>
      openFile({
        ctx: { ...service.ctx, now: () => now },
        caller: { kind: "person", userId, role: "viewer", organisationId: of.id, mode: "live" },
        search: new URLSearchParams({ format: "csv" }),
      } as unknown as Visit) as Promise<Download>;
  const textOf = ({ body }: Download) => new Response(body).text();
  const REFUSED = { refused: "rate_limit_exceeded" };

  test("are two of a person at most; one that is left makes room", async () => {
    const home = await service.organisation(1_000n);
    const open = openedBy(createStatementFiles());
    const [first, second] = [await open(home, "ada"), await open(home, "ada")];
    expect(await open(home, "ada")).toMatchObject(REFUSED);
    await first.body.cancel();
    expect(await textOf(await open(home, "ada"))).toContain("deposit");
    await textOf(second);
    const atOnce = await Promise.all([1, 2, 3].map(() => open(home, "ada")));
    expect(atOnce.filter((answer) => "body" in answer)).toHaveLength(2);
    for (const answer of atOnce) if ("body" in answer) await textOf(answer);
    for (let more = 0; more < 3; more++) await textOf(await open(home, "ada"));
  });

  test("are half of all at most of one organisation: another one has room", async () => {
    const [home, other] = [await service.organisation(1_000n), await service.organisation(1_000n)];
    const open = openedBy(createStatementFiles());
    for (const person of ["ada", "ada", "bob", "bob"]) await open(home, person);
    expect(await open(home, "eve")).toMatchObject(REFUSED);
    expect(await textOf(await open(other, "eve"))).toContain("deposit");
  });

  test("hold their places for ten minutes, even where nobody reads them", async () => {
    const home = await service.organisation(1_000n);
    const open = openedBy(createStatementFiles());
    const unread = [await open(home, "ada"), await open(home, "ada")];
    now += 10 * 60_000;
    expect(await open(home, "ada")).toMatchObject(REFUSED);
    now += 1;
    expect(await textOf(await open(home, "ada"))).toContain("deposit");
    for (const late of unread)
      await expect(textOf(late)).rejects.toThrow("a statement was not taken in time");
  });
});

describe("a correction", () => {
  const deposited = async (of: TestOrganisation) =>
    must(
      await fundBalance(service.ctx, MACHINE, {
        ...{ organisation_id: of.id, mode: "live", amount: "5000000", reference: "wire" },
      }),
    ).id;

  test("is written in units, recorded, and shown with its reason", async () => {
    const home = await service.organisation(0n);
    const id = await deposited(home);
    const browser = openConsole(service, home.people.admin.as);
    expect((await browser.get("/console/money")).html).toContain(`${CORRECTIONS}/new?deposit=${id}`);
    const path = `${CORRECTIONS}/new?deposit=${id}`;
    const page = await browser.get(path);
    expect(page.text).toContain("The deposit counts for 5.00 USDC");
    for (const [wrong, name] of [
      [{ amount: "x", reason: "r" }, "amount"],
      [{ amount: "4", reason: "" }, "reason"],
      [{ amount: "5", reason: "r" }, "amount"],
    ] as const) {
      const refused = await browser.post(`${CORRECTIONS}/new`, {
        ...(await browser.formOn(path, `${CORRECTIONS}/new`)),
        ...wrong,
      });
      expect([refused.status, refused.html]).toEqual([400, expect.stringContaining(`id="${name}-problem"`)]);
    }
    const fields = {
      ...(await browser.formOn(path, `${CORRECTIONS}/new`)),
      amount: "4.50",
      reason: "typed <wrongly>",
    };
    expect((await browser.post(`${CORRECTIONS}/new`, fields)).to).toBe(`${CORRECTIONS}?done=recorded`);
    expect(service.balance(home).available).toBe(4_500_000n);
    const list = await openConsole(service, home.people.viewer.as).get(CORRECTIONS);
    expect(list.html).toContain("typed &lt;wrongly&gt;");
    expect(list.text).toContain("4.50 USDC before 5.00 USDC");
    const deposits = await openConsole(service, home.people.viewer.as).get("/console/money");
    expect(deposits.text).toContain("Reference Amount Counts for Recorded Id wire 5.00 USDC 4.50 USDC");
  });

  test("above the threshold waits for another admin", async () => {
    const home = await service.organisation(0n);
    const id = await deposited(home);
    await threshold(home, "1000000");
    const browser = openConsole(service, home.people.admin.as);
    const path = `${CORRECTIONS}/new?deposit=${id}`;
    const fields = {
      ...(await browser.formOn(path, `${CORRECTIONS}/new`)),
      amount: "0",
      reason: "never came",
    };
    expect((await browser.post(`${CORRECTIONS}/new`, fields)).to).toBe(`${CORRECTIONS}?done=proposed`);
    expect(service.balance(home).available).toBe(5_000_000n);
    const list = await browser.get(CORRECTIONS);
    expect(list.text).toContain("Waits for a second person");
    const deciding = /href="([^"]*as=approve)"/.exec(list.html)![1]!.replaceAll("&amp;", "&");
    const own = await browser.post(
      `${CORRECTIONS}/decide`,
      await browser.formOn(deciding, `${CORRECTIONS}/decide`),
    );
    expect([own.status, own.text]).toEqual([403, expect.stringContaining("a second person approves it")]);
    await threshold(home, "5000000");
    const second = openConsole(service, home.people.owner.as);
    const approved = await second.post(
      `${CORRECTIONS}/decide`,
      await second.formOn(deciding, `${CORRECTIONS}/decide`),
    );
    expect(approved.to).toBe(`${CORRECTIONS}?done=recorded`);
    expect(service.balance(home).available).toBe(0n);
  });
});
