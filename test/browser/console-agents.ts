/**
 * `bun run browser`: an admin at the console in headless Chromium makes an agent, gives it a budget and a key, watches what it
 * spends, rotates and revokes the key, and pauses, kills and revives the agent. axe looks at each page, light and dark.
 */
import { beforeAll, expect, test } from "bun:test";
import { openAtConsole } from "../support/at-console.ts";
import { WALK_MS } from "../support/chromium.ts";

const SPEC = { clauses: [{ kind: "json.jsonpath", path: "$.done", equals: true }] };

const { source, service, home, base, chromium, page, problems, signIn, expectCare } = await openAtConsole();
/** The path of the agent's page, and its key. */
let agent: string;
let secret: string;
beforeAll(() => signIn(page, "admin", "/console/agents"), WALK_MS);

const here = () => new URL(page.url()).pathname;

/** The agent opens a warrant in its own name. */
async function open(amount: string, payee: string) {
  const body = service.body({ amount, payee, spec: SPEC, agent_id: agent.split("/").at(-1)! });
  return service.post("/v1/warrants", body, { as: { Authorization: `Bearer ${secret}` } });
}

test(
  "an agent is made, and gets a budget and a key, whose secret is shown once",
  async () => {
    await expectCare("/console/agents");
    await page.click("text=Make an agent");
    await expectCare("/console/agents/new");
    expect(await page.locator("#must_be_named").inputValue()).toBe("on");
    await page.fill("#name", "Research buyer");
    await page.click("text=Make it");
    await page.getByText("The agent is made.").waitFor();
    agent = here();
    await expectCare(agent);
    await page.getByRole("link", { name: "Give it a budget" }).click();
    await page.fill("#amount_ceiling", "25");
    await page.fill("#hourly_max", "10.00");
    await page.fill("#daily_max", "20");
    await page.fill("#per_warrant_max", "8.4");
    await page.fill("#warrant_limit", "12");
    await page.fill("#payees", "acme\n*");
    await page.click("button:has-text('Give it this budget')");
    await page.getByText("entry 2 must not be * alone").waitFor();
    await expectCare(`${agent}/sessions/new`);
    await page.fill("#payees", "acme\nnorthwind*");
    await page.fill("#source_origins", "https://api.example\nhttp://127.0.0.1:*");
    await page.click("button:has-text('Give it this budget')");
    await page.getByText("It has a new budget.").waitFor();
    await page.click("button:has-text('Make a key')");
    await page.getByRole("heading", { name: "The new key" }).waitFor();
    secret = await page.inputValue("#secret");
    expect(secret).toMatch(/^hf_live_/);
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    await page.click("text=Copy");
    await page.getByText("Copied").waitFor();
    expect(await page.evaluate<string>("navigator.clipboard.readText()")).toBe(secret);
    await page.click("text=I have saved it");
    await page.getByText(`…${secret.slice(-4)}`, { exact: true }).waitFor();
    expect(await page.content()).not.toContain(secret);
  },
  WALK_MS,
);

test(
  "its page shows what it has spent, in which window, and why it was refused",
  async () => {
    expect((await open("8400000", "acme")).status).toBe(201);
    const failing = await open("1000000", "northwind-west");
    expect((await open("1000000", "stranger")).code).toBe("session_limit_exceeded");
    const verify = { source_url: source.gives({ done: false }) };
    await service.post(`/v1/warrants/${failing.body.id}/verify`, verify, {
      as: { Authorization: `Bearer ${secret}` },
    });
    await page.goto(base + agent);
    await page.getByText("9.40 USDC of 25.00 USDC").waitFor();
    await page.getByText("9.40 USDC of 10.00 USDC").waitFor();
    await page.getByText("1 of 3").first().waitFor();
    await page.getByRole("link", { name: "northwind-west" }).waitFor();
    await expectCare(agent);
    await expectCare("/console/agents");
    await expectCare(`${agent}/sessions`);
    await page.click("text=All sessions");
    await page.click("table a");
    await page.getByRole("heading", { name: "Spend session" }).waitFor();
    await expectCare(here());
    await expectCare(`${here()}/end`);
  },
  WALK_MS,
);

test(
  "the agent is changed in a dialog, and what is wrong is said in it",
  async () => {
    await page.goto(base + agent);
    await page.click("text=Change");
    await page.getByRole("dialog").getByRole("heading", { name: "Change the agent" }).waitFor();
    await page.fill("#failure_budget", "5");
    await page.getByRole("dialog").getByText("Change it").click();
    await page.getByText("The agent is changed.").waitFor();
    await page.getByText("1 of 5").waitFor();
    await expectCare(`${agent}/edit`);
  },
  WALK_MS,
);

test(
  "its key is rotated and revoked",
  async () => {
    await page.goto(base + agent);
    await page.getByRole("link", { name: "Rotate the key" }).click();
    await page.getByRole("dialog").getByText("Rotate it").click();
    await page.getByRole("heading", { name: "The new key" }).waitFor();
    expect(await page.inputValue("#secret")).not.toBe(secret);
    await page.click("text=I have saved it");
    await page.getByText("works until").waitFor();
    await expectCare(`${agent}/keys`);
    await page.getByRole("link", { name: `Revoke the key …${secret.slice(-4)}` }).click();
    await page.getByRole("dialog").getByText("Revoke it").click();
    await page.getByText("The key is revoked.").waitFor();
    const { status } = await service.get("/v1/warrants", { as: { Authorization: `Bearer ${secret}` } });
    expect(status).toBe(401);
    for (const verb of ["rotate", "revoke"]) await expectCare(`/console/keys/${home.live.keyId}/${verb}`);
  },
  WALK_MS,
);

test(
  "a kill says what freezes and how much money is in it, can be left, and can be undone",
  async () => {
    for (const change of ["pause", "kill"]) await expectCare(`${agent}/${change}`);
    await page.goto(base + agent);
    await page.click("text=Kill");
    const dialog = page.getByRole("dialog");
    await dialog.getByText("1 warrant with 8.40 USDC").waitFor();
    await dialog.locator("[data-cancel]").click();
    expect(await page.locator("h1 .badge").textContent()).toBe("Active");
    await page.click("text=Kill");
    await dialog.getByText("Kill it").dblclick();
    await page.getByText("The agent is killed, and what it held is frozen.").waitFor();
    expect(await page.locator("h1 .badge").textContent()).toBe("Killed");
    await expectCare(agent);
    await expectCare(`${agent}/activate`);
    await page.getByRole("link", { name: "Activate" }).click();
    await dialog.getByText("1 warrant with 8.40 USDC").waitFor();
    await dialog.getByText("Activate it").click();
    await page.getByText("The agent is active.").waitFor();
  },
  WALK_MS,
);

test(
  "without a script an operator pauses it, and a viewer only looks",
  async () => {
    const operator = await chromium.openWithoutScript();
    await signIn(operator, "operator", "/console/agents");
    await operator.click("text=Research buyer");
    expect(await operator.getByText("API keys").count()).toBe(0);
    await operator.click("text=Pause");
    await operator.click("text=Pause it");
    await operator.getByText("The agent is paused.").waitFor();
    await operator.context().close();
    const viewer = await chromium.openWithoutScript();
    await signIn(viewer, "viewer", "/console/agents");
    await viewer.click("text=Research buyer");
    await viewer.getByText("It is paused").waitFor();
    expect(await viewer.locator(".head .actions > *").count()).toBe(0);
    await viewer.context().close();
  },
  WALK_MS,
);

test("no page broke its own policy, and no script failed", () => {
  expect(problems).toEqual([]);
});
