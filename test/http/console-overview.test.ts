import { afterAll, beforeAll, expect, test } from "bun:test";
import { openConsole } from "../support/console.ts";
import type { TestOrganisation } from "../support/organisations.ts";
import { type Service, startTestServer } from "../support/server.ts";
import { type Source, startSource } from "../support/source.ts";

/** The console's overview: what there is, what needs a person, and what happened, drawn. */

let service: Service;
let source: Source;
beforeAll(async () => {
  [source, service] = [startSource(), await startTestServer()];
});
afterAll(async () => {
  await service?.close();
  source?.stop();
});

const spec = { clauses: [{ kind: "json.jsonpath", path: "$.a", equals: 1 }] };

async function checked(home: TestOrganisation, a: number): Promise<void> {
  const { id } = await service.opened(home, { amount: "2000000", spec });
  const source_url = source.gives({ a });
  await service.post(`/v1/warrants/${id}/verify`, { source_url }, { as: home.live.as });
}

test("shows balances, what waits, the money of each day and why checks failed, each counted once", async () => {
  const home = await service.organisation(100_000_000n);
  await checked(home, 1);
  await checked(home, 2);
  await checked(home, 2);
  const refunded = await service.opened(home, { amount: "500000", spec });
  await service.post(`/v1/warrants/${refunded.id}/refund`, {}, { as: home.people.owner.as });
  const viewer = openConsole(service, home.people.viewer.as);
  // Pages at once, and pages after one another, read on from where the last one stopped.
  const pages = await Promise.all([1, 2, 3].map(() => viewer.get("/console")));
  for (const page of [...pages, await viewer.get("/console")]) {
    expect(page.text).toContain("Available 94.00 USDC Held 4.00 USDC Paid 2.00 USDC");
    expect(page.text).toContain("2.00 USDC to acme Escalated value mismatch");
    expect(page.html).toContain(": held 6.50 USDC, paid 2.00 USDC, returned 0.50 USDC");
    expect(page.html).toMatch(/title="value_mismatch">value mismatch<\/span><svg.*?<span>2<\/span>/);
  }
  await checked(home, 2);
  const later = await viewer.get("/console");
  expect(later.html).toContain(": held 8.50 USDC, paid 2.00 USDC, returned 0.50 USDC");
});

test("shows nothing of another organisation or mode, and says what to do where there is nothing", async () => {
  const home = await service.organisation(0n);
  const { text } = await openConsole(service, home.people.viewer.as).get("/console");
  for (const words of [
    "There is no money yet",
    "An admin records what comes in.",
    "Nothing waits for you",
    "Nothing moved lately",
    "None has failed lately",
  ])
    expect([words, text.includes(words)]).toEqual([words, true]);
  expect(text).not.toContain("value mismatch");
  const admin = openConsole(service, home.people.admin.as);
  expect((await admin.get("/console")).text).toContain("Record the first deposit");
  const rich = await service.organisation();
  await checked(rich, 2).catch(() => null);
  const sandbox = openConsole(service, await rich.signIn(rich.people.viewer, "sandbox"));
  expect((await sandbox.get("/console")).text).toContain("Nothing moved lately");
});
