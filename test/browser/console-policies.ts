/**
 * `bun run browser`: an admin at the console in headless Chromium drafts a policy, which is judged while it is typed, back-tests it
 * and saves it; saves a clause and a schema; and tries clauses on the bench. axe looks at each page, light and dark.
 */
import { beforeAll, expect, test } from "bun:test";
import { openAtConsole } from "../support/at-console.ts";
import { expectCareOn, WALK_MS } from "../support/chromium.ts";

const { source, service, home, base, chromium, page, problems, signIn, expectCare } = await openAtConsole();
beforeAll(() => signIn(page, "admin", "/console/policies"), WALK_MS);

const here = () => new URL(page.url()).pathname;
const band = (at: number, name: string) => page.locator(`[name="bands.${at}.${name}"]`);

/** A warrant of 4.00 USDC for two clauses, of which the source meets one. */
async function checkHalf(payee: string): Promise<void> {
  const clauses = [1, 2].map((equals) => ({ kind: "json.jsonpath", path: "$.a", equals }));
  const { id } = await service.opened(home, { amount: "4000000", payee, spec: { clauses } });
  const body = { source_url: source.gives({ a: 1 }) };
  await service.post(`/v1/warrants/${id}/verify`, body, { as: home.live.as });
}

test(
  "a draft is judged and drawn while it is typed, and what is wrong stands beside its field",
  async () => {
    await expectCare("/console/policies");
    await page.click("text=Draft the first one");
    await expectCare("/console/policies/new");
    // It is judged a moment after it was typed. A band that is asked for at that moment may be missing from the answer.
    const judged = page.waitForResponse((response) => response.url().endsWith("/console/policies/try"));
    await page.fill("#name", "standard");
    await judged;
    await page.click("text=Add a band");
    await band(2, "minScore").fill("1.5");
    await page.getByText("must be a number from 0 to 1").waitFor();
    expect(await band(2, "minScore").getAttribute("aria-invalid")).toBe("true");
    // What one types is not overwritten by the answer, and the cursor stays.
    expect(await band(2, "minScore").inputValue()).toBe("1.5");
    await band(2, "minScore").fill("0.5");
    await band(2, "outcome").selectOption("partial_release");
    await page.getByText("policy_band_bps_required").waitFor();
    await expectCareLive("draft-refused");
    await band(2, "share").pressSequentially("25");
    await page.getByRole("img", { name: /0\.5 to below 1: Release 25 %/ }).waitFor();
    expect(await page.evaluate("document.activeElement.name")).toBe("bands.2.share");
    expect(await page.inputValue("#name")).toBe("standard");
  },
  WALK_MS,
);

/** axe and the pictures of what the page shows now. Afterwards it has its own size again. */
async function expectCareLive(name: string): Promise<void> {
  const size = page.viewportSize();
  await expectCareOn(page, `/console/policies/${name}`);
  if (size) await page.setViewportSize(size);
}

test(
  "it is back-tested, and each check that would flip is listed",
  async () => {
    await page.click("text=Back-test it");
    await page.getByText("No check is stored in live").waitFor();
    await checkHalf("Ada's Data Co.");
    await checkHalf("Northwind Weather");
    await page.click("text=Back-test it");
    await page.getByText("2 of 2 checks would flip, +2.00").waitFor();
    const flips = page.getByRole("table", { name: "What would flip" });
    await flips.getByRole("link", { name: "Northwind Weather" }).waitFor();
    await expectCareLive("back-tested");
  },
  WALK_MS,
);

test(
  "it is saved as a version; the next one is drawn beside it, and both are compared",
  async () => {
    await page.click("text=Save the policy");
    await page.getByText("Version 1 is saved.").waitFor();
    await expectCare(here());
    await page.click("text=Draft the next version");
    await page.getByText("Both decide everything alike.").waitFor();
    await band(2, "outcome").selectOption("refund");
    await page.getByRole("table", { name: "What changes" }).waitFor();
    await page.click("text=Save as version 2");
    await page.getByText("Version 2 is saved.").waitFor();
    await page.getByRole("link", { name: "Compare with version 1" }).click();
    await page.getByText("Version 1 beside version 2").waitFor();
    await expectCare(here() + new URL(page.url()).search);
    await page.goto(`${base}/console/policies`);
    await page.getByRole("cell", { name: "In use" }).waitFor();
    await expectCare("/console/policies");
    const saved = service.ctx.reader.policies.list(home.id);
    expect(saved.map(({ name, version }) => [name, version])).toEqual([
      ["standard", 2],
      ["standard", 1],
    ]);
  },
  WALK_MS,
);

test(
  "a clause and a schema are saved, and tried on the bench",
  async () => {
    await page.click("text=Verifiers and schemas");
    await expectCare("/console/verifiers");
    await page.click("text=Save the first one");
    await page.selectOption("#type", "json.jsonpath");
    await page.getByLabel("path").fill("$.temperature");
    await page.fill("#name", "has a temperature");
    await expectCare("/console/verifiers/new");
    await page.click("main >> text=Save the clause");
    await page.getByText("The clause is saved.").waitFor();
    await expectCare(here());
    await page.click("text=Try it on the bench");
    await page.fill("#raw", '{ "temperature": 21.5 }');
    await page.click("text=Try on this body");
    await page.getByText("All clauses passed").waitFor();
    await page.fill("#url", source.gives({ report: "done" }));
    await page.click("text=Fetch and try");
    await page.getByText("Nothing in the body is at this path.").waitFor();
    await expectCareLive("benched");
    await expectCare("/console/bench");
    await page.getByRole("link", { name: "Schemas", exact: true }).click();
    await expectCare("/console/schemas");
    await page.click("text=Save the first one");
    await page.fill("#name", "weather.v1");
    await expectCare("/console/schemas/new");
    // On a busy machine the second that an evaluator has for a schema may be too short: then one asks again.
    const saved = page.getByText("The schema is saved.");
    while ((await saved.count()) === 0) {
      await page.click("text=Save the schema");
      await page.getByText(/The schema is saved|takes too long to compile/).waitFor();
    }
    await expectCare(here());
    await page.click("text=Draft weather.v2");
    expect(await page.inputValue("#name")).toBe("weather.v2");
  },
  WALK_MS,
);

test(
  "the form of a warrant tries its clauses beside it, and is gone on with",
  async () => {
    await page.goto(`${base}/console/warrants/new`);
    await page.fill("#clauses", '[{ "kind": "http.status", "equals": 418 }]');
    const [bench] = await Promise.all([
      page.context().waitForEvent("page"),
      page.click("text=Try the clauses on the bench"),
    ]);
    await bench.getByText("Each clause is explained here").waitFor();
    expect(await bench.inputValue("#clauses")).toContain("418");
    await bench.close();
    expect(await page.getByText("Hold the amount").isEnabled()).toBe(true);
    expect(await page.inputValue("#clauses")).toContain("418");
  },
  WALK_MS,
);

test(
  "without a script a policy is drafted, back-tested and saved, and a viewer reads it",
  async () => {
    const plain = await chromium.openWithoutScript();
    await signIn(plain, "admin", "/console/policies");
    await plain.click("text=Draft a policy");
    await plain.fill("#name", "plain");
    await plain.click("text=Remove >> nth=1");
    await plain.click("text=Back-test it");
    await plain.getByText("one band must have minScore 0").waitFor();
    await plain.click("text=Add a band");
    await plain.fill('[name="bands.1.minScore"]', "0");
    await plain.selectOption('[name="bands.1.outcome"]', "refund");
    await plain.click("text=Back-test it");
    await plain.getByText("2 of 2 checks would flip").waitFor();
    await plain.click("text=Save the policy");
    await plain.getByText("Version 1 is saved.").waitFor();
    await plain.context().clearCookies();
    await signIn(plain, "viewer", "/console/policies");
    await plain.click("text=plain");
    await plain.getByRole("heading", { name: "plain" }).waitFor();
    expect(await plain.getByText("Draft the next version").count()).toBe(0);
    await plain.context().close();
  },
  WALK_MS,
);

test("no page broke its own policy, and no script failed", () => {
  expect(problems).toEqual([]);
});
