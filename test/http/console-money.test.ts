import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { MACHINE } from "../../src/services/admin/authority.ts";
import { fundBalance } from "../../src/services/admin/balances.ts";
import { openConsole } from "../support/console.ts";
import { must, type TestOrganisation } from "../support/organisations.ts";
import { type Service, startTestServer } from "../support/server.ts";

/** The console's page of money, and the form that records a deposit. */

let service: Service;
let home: TestOrganisation;
beforeAll(async () => {
  service = await startTestServer();
  home = await service.organisation(10_000_000n);
});
afterAll(() => service?.close());

const FORM = "/console/money/deposit";
const asking = (fields: object) => `${FORM}?${new URLSearchParams(fields as Record<string, string>)}`;
const fund = (of: TestOrganisation, reference: string, mode: "live" | "sandbox" = "live", asset = "USDC") =>
  fundBalance(service.ctx, MACHINE, {
    ...{ organisation_id: of.id, mode, amount: "1000000", asset, reference },
  }).then(must);

test("shows the balances of both modes, and the deposits of this one", async () => {
  const own = await service.organisation(0n);
  await fund(own, "Wire <17>");
  await fund(own, "elsewhere", "sandbox", "EURC");
  await service.opened(own, { amount: "400000" });
  const { text, html } = await openConsole(service, own.people.viewer.as).get("/console/money");
  expect(text).toContain("USDC 0.60 USDC 0.40 USDC 0.00 USDC");
  expect(html).toContain("Wire &lt;17&gt;");
  expect(text).toContain("In the sandbox");
  expect(text).toContain("EURC");
  expect(text).not.toContain("elsewhere");
  // A viewer reads.
  expect(html).not.toContain(FORM);
  const other = await openConsole(service, home.people.viewer.as).get("/console/money");
  expect(other.html).not.toContain("Wire");
});

test("deposits are paged, newest first, over all assets", async () => {
  const own = await service.organisation(0n);
  for (let i = 0; i < 60; i++) await fund(own, `wire-${i}.`, "live", i % 3 === 0 ? "EURC" : "USDC");
  const browser = openConsole(service, own.people.viewer.as);
  const seen: number[] = [];
  let path: string | null = "/console/money";
  while (path !== null) {
    const { html } = await browser.get(path);
    seen.push(...[...html.matchAll(/wire-(\d+)\./g)].map(([, number]) => Number(number)));
    path = /href="([^"]+)" rel="next"/.exec(html)?.[1]?.replaceAll("&amp;", "&") ?? null;
  }
  expect(seen).toEqual(Array.from({ length: 60 }, (_, i) => 59 - i));
});

describe("a deposit", () => {
  const right = { amount: "1 250.50", asset: "USDC", reference: "wire 4711" };

  test("is confirmed with the exact amount, and recorded as the person's", async () => {
    const browser = openConsole(service, home.people.admin.as);
    const page = await browser.get(asking(right));
    expect(page.text).toContain("Record 1 250.50 USDC?");
    expect(page.text).toContain("Agents can spend it from then on. This cannot be undone.");
    const fields = await browser.formOn(asking(right), FORM);
    expect(fields.amount).toBe("1250500000");
    const before = service.balance(home).available;
    const replies = await Promise.all([browser.post(FORM, fields), browser.post(FORM, fields)]);
    expect(replies.map(({ status, to }) => [status, to])).toEqual([
      [303, "/console/money?done=recorded"],
      [303, "/console/money?done=recorded"],
    ]);
    expect(service.balance(home).available - before).toBe(1_250_500_000n);
    const { body } = await service.get("/v1/console/audit-log", { as: home.people.owner.as });
    expect(body.data[0]).toMatchObject({
      action: "balance.funded",
      actor: { kind: "user", id: home.people.admin.id },
      after: { amount: "1250500000", reference: "wire 4711" },
    });
  });

  test("that was recorded already is not posted again, though the form is another", async () => {
    const browser = openConsole(service, home.people.admin.as);
    const given = { ...right, reference: "wire 4712" };
    await browser.post(FORM, await browser.formOn(asking(given), FORM));
    const before = service.balance(home).available;
    const again = await browser.post(FORM, await browser.formOn(asking(given), FORM));
    expect([again.status, service.balance(home).available]).toEqual([303, before]);
    const other = await browser.post(FORM, await browser.formOn(asking({ ...given, amount: "1" }), FORM));
    expect([other.status, other.text]).toEqual([409, expect.stringContaining("give this one another")]);
    expect(service.balance(home).available).toBe(before);
  });

  test.each([
    [{ ...right, amount: "1.0000001" }, "amount", "must be an amount of USDC"],
    [{ ...right, amount: "0" }, "amount", "must be an amount of USDC"],
    [{ ...right, amount: "-5" }, "amount", "must be an amount of USDC"],
    [{ ...right, reference: " " }, "reference", "it names this deposit, so that it is posted once"],
  ])("%p is shown again, with what is wrong beside the field", async (fields, name, words) => {
    const page = await openConsole(service, home.people.admin.as).get(asking(fields));
    expect([page.status, page.text]).toEqual([400, expect.stringContaining(words)]);
    expect(page.html).toContain(`id="${name}-problem"`);
    expect(page.html).not.toContain('method="post" action="/console/money/deposit"');
  });

  test.each([
    [{ reference: "" }, 400],
    [{ reference: "a\u202eb" }, 400],
    [{ amount: "0" }, 400],
    [{ amount: "99999999999999999999" }, 400],
    [{ asset: "no asset" }, 400],
  ])("%p that no form of ours would send moves nothing", async (wrong, status) => {
    const browser = openConsole(service, home.people.admin.as);
    const given = { ...right, reference: "wire 4713" };
    const before = service.allRows(home);
    const reply = await browser.post(FORM, { ...(await browser.formOn(asking(given), FORM)), ...wrong });
    expect(reply.status).toBe(status);
    expect(service.allRows(home)).toEqual(before);
  });

  test("goes to the mode that the form was made in, or nowhere", async () => {
    const as = await home.signIn(home.people.admin);
    const browser = openConsole(service, as);
    const fields = await browser.formOn(asking({ ...right, reference: "mode" }), FORM);
    const mode = await browser.formOn("/console", "/console/mode");
    await browser.post("/console/mode", { ...mode, mode: "sandbox" });
    const before = [service.balance(home), service.balance(home, "sandbox")];
    expect((await browser.post(FORM, fields)).status).toBe(400);
    expect([service.balance(home), service.balance(home, "sandbox")]).toEqual(before);
  });
});
