/**
 * `bun run browser`: a person at the console in headless Chromium: signs in, opens a warrant, has it checked, pays a part of one,
 * and decides an escalation with a passkey. axe looks at each page, light and dark, and finds nothing serious.
 */
import { expect, test } from "bun:test";
import { openAtConsole } from "../support/at-console.ts";
import { WALK_MS } from "../support/chromium.ts";
import { PASSWORD } from "../support/organisations.ts";
import { setThreshold } from "../support/passkeys.ts";

const SPEC = { clauses: [{ kind: "json.jsonpath", path: "$.done", equals: true }] };

const { source, service, home, base, chromium, page, problems, expectCare } = await openAtConsole();

async function escalate(amount: string): Promise<string> {
  const { id } = await service.opened(home, { amount, spec: SPEC, payee: "Ada's Data Co." });
  const body = { source_url: source.gives({ done: false }) };
  expect((await service.post(`/v1/warrants/${id}/verify`, body, { as: home.live.as })).body.state).toBe(
    "escalated",
  );
  return id;
}
const stateOf = async (id: string) =>
  (await service.get(`/v1/warrants/${id}`, { as: home.live.as })).body.state;

test(
  "the front door leads to the sign-in, and that to the overview",
  async () => {
    await page.goto(base);
    expect(page.url()).toBe(`${base}/console/sign-in?next=%2Fconsole`);
    await expectCare("/console/sign-in");
    await page.fill("#email", home.people.owner.email);
    await page.fill("#password", "wrong horse battery staple");
    await page.click("button[type=submit]");
    await page.getByText("The e-mail or the password is wrong.").waitFor();
    await page.fill("#password", PASSWORD);
    await page.click("button[type=submit]");
    await page.getByRole("heading", { name: "Overview" }).waitFor();
    await page.getByText("1 000.00 USDC").waitFor();
    await expectCare("/console");
    await expectCare("/console/components");
  },
  WALK_MS,
);

test(
  "a warrant is opened and checked",
  async () => {
    await page.click("text=Warrants");
    await expectCare("/console/warrants");
    await page.click("text=Open the first one");
    await expectCare("/console/warrants/new");
    await page.fill("#payee", "Northwind");
    await page.fill("#amount", "8.40");
    await page.fill("#clauses", JSON.stringify(SPEC.clauses));
    await page.click("text=Hold the amount");
    await page.getByText("The amount is held.").waitFor();
    await expectCare(new URL(page.url()).pathname);
    // Times are the reader's, and UTC on hover.
    const time = page.locator("time").first();
    const [shown, title] = [await time.textContent(), await time.getAttribute("title")];
    expect(title).toMatch(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC$/);
    expect(shown).not.toContain("UTC");
    await page.fill("#source_url", source.gives({ done: true }));
    await page.click("text=Fetch and check");
    await page.getByText("The check was made.").waitFor();
    expect(await page.locator("h1 .badge").textContent()).toBe("Released");
    await expectCare(new URL(page.url()).pathname);
  },
  WALK_MS,
);

test(
  "a part is released in a dialog, whose slider shows both sides in money",
  async () => {
    const { id } = await service.opened(home, { amount: "10000000", spec: SPEC });
    await page.goto(`${base}/console/warrants/${id}`);
    await page.click("text=Release a part");
    await page.getByRole("dialog").getByText("Release a part of 10.00 USDC?").waitFor();
    const dialog = page.getByRole("dialog");
    expect(await dialog.locator("[data-paid]").textContent()).toBe("5.00\u00a0USDC");
    await dialog.locator("input[type=range]").focus();
    for (const _ of [1, 2, 3, 4, 5]) await page.keyboard.press("ArrowRight");
    expect(await dialog.locator("[data-paid]").textContent()).toBe("5.50\u00a0USDC");
    expect(await dialog.locator("[data-returned]").textContent()).toBe("4.50\u00a0USDC");
    await dialog.locator("[data-cancel]").click();
    expect(await stateOf(id)).toBe("held");
    await page.click("text=Release a part");
    await dialog.locator("#share").fill("25");
    expect(await dialog.locator("[data-returned]").textContent()).toBe("7.50\u00a0USDC");
    await dialog.getByText("Release this part").dblclick();
    await page.getByText("The warrant is settled.").waitFor();
    expect(await stateOf(id)).toBe("partially_released");
    await page.getByText("2.50 USDC").waitFor();
    await expectCare(`/console/warrants/${id}/settle/partial_release`);
  },
  WALK_MS,
);

test(
  "the list narrows while one types, and its URL says how",
  async () => {
    await page.goto(`${base}/console/warrants`);
    await page.getByText("Northwind").waitFor();
    await page.fill("#q", "acme");
    await page.getByText("Northwind").waitFor({ state: "detached" });
    await page.getByRole("link", { name: "acme" }).first().waitFor();
    expect(new URL(page.url()).searchParams.get("q")).toBe("acme");
    await page.reload();
    expect(await page.inputValue("#q")).toBe("acme");
  },
  WALK_MS,
);

test(
  "an escalation is decided by the keyboard, and another above the threshold with a passkey",
  async () => {
    await page.goto(`${base}/console/account`);
    await page.fill("#passkey_name", "Laptop");
    await page.fill("#passkey_password", PASSWORD);
    // The page may show the passkey before it is loaded anew.
    await Promise.all([page.waitForEvent("load"), page.click("text=Add a passkey")]);
    await page.getByText("Laptop").first().waitFor();
    const [small, large] = [await escalate("1000000"), await escalate("9000000")];
    await page.goto(`${base}/console/escalations`);
    await expectCare("/console/escalations");
    await page.keyboard.press("3");
    expect(await page.locator("[value=refund]").isChecked()).toBe(true);
    await page.fill("#note", "The deliverable is not there");
    await page.keyboard.press("Enter");
    await page.getByText("Your decision is recorded.").waitFor();
    expect(await stateOf(small)).toBe("refunded");
    await setThreshold(service, home, "2000000");
    await page.goto(`${base}/console/escalations`);
    await page.keyboard.press("1");
    await page.click("text=Decide, with your passkey");
    await page.getByText("Your decision is recorded.").waitFor();
    expect(await stateOf(large)).toBe("released");
    const { body } = await service.get(`/v1/warrants/${large}/trace`, { as: home.live.as });
    expect(body.data.at(-1).actor).toEqual({ kind: "user", id: home.people.owner.id });
    await setThreshold(service, home, null);
  },
  WALK_MS,
);

test(
  "the switch leads to the sandbox, which is named on each page; a passkey signs in; signing out ends it",
  async () => {
    await page.click("text=Sandbox");
    await page.getByText("SANDBOX", { exact: true }).waitFor();
    await expectCare("/console");
    await page.click(".account summary");
    await page.click("text=dark");
    expect(await page.locator("html").getAttribute("data-theme")).toBe("dark");
    await page.click(".account summary");
    await page.click("text=Sign out");
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
    await page.click("text=Sign in with a passkey");
    await page.getByRole("heading", { name: "Overview" }).waitFor();
  },
  WALK_MS,
);

test(
  "without a script everything is there",
  async () => {
    const plain = await chromium.openWithoutScript();
    await plain.goto(`${base}/console`);
    await plain.fill("#email", home.people.operator.email);
    await plain.fill("#password", PASSWORD);
    await plain.click("button[type=submit]");
    await plain.click("text=Warrants");
    const { id } = await service.opened(home, { amount: "4000000", spec: SPEC });
    await plain.goto(`${base}/console/warrants/${id}`);
    await plain.click("text=Refund");
    await plain.click("text=Refund it");
    await plain.getByText("The warrant is settled.").waitFor();
    expect(await stateOf(id)).toBe("refunded");
    await plain.context().close();
  },
  WALK_MS,
);

test("no page broke its own policy, and no script failed", () => {
  expect(problems).toEqual([]);
});
