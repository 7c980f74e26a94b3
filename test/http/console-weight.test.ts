import { afterAll, beforeAll, expect, test } from "bun:test";
import { consoleRoutes } from "../../src/console/routes.ts";
import { openConsole } from "../support/console.ts";
import { loadedBy, type Walked, walkConsole } from "../support/console-walk.ts";
import { A_FEW, liveIn } from "../support/lived-in.ts";
import { openMarket } from "../support/market.ts";
import { type Service, startTestServer } from "../support/server.ts";
import { SCRIPTED, signedIn } from "../support/stage.ts";

/** Every page of the console, of an organisation that has been at work: what it weighs, and that no script is needed for it. */

const BYTES_MAX = 200_000;

let service: Service;
let walked: readonly Walked[];
let missed: readonly string[];
let weightOf: (path: string) => Promise<number>;
beforeAll(async () => {
  service = await startTestServer();
  const { id: organisationId, people } = await service.organisation();
  const market = openMarket();
  const ctx = { ...service.ctx, ...SCRIPTED, x402: { ...market.x402, underWay: service.ctx.x402.underWay } };
  const caller = (role: "operator" | "admin" | "owner") =>
    signedIn(ctx, { kind: "person", userId: people[role].id, role, organisationId, mode: "live" });
  const callers = {
    ...{ operator: await caller("operator"), admin: await caller("admin") },
    owner: await caller("owner"),
  };
  await liveIn({ ctx, organisationId, mode: "live", ...callers }, market, "http://127.0.0.1:9", A_FEW);
  const owner = openConsole(service, people.owner.as);
  const stranger = openConsole(service, {});
  ({ walked, missed } = await walkConsole({
    searches: ["northwind", "is-nowhere"],
    ask: (path, hasPerson) => (hasPerson ? owner : stranger).get(path),
  }));
  const weights = new Map<string, Promise<number>>();
  weightOf = (path) => {
    const weight = weights.get(path) ?? owner.get(path).then(({ html }) => Buffer.byteLength(html));
    weights.set(path, weight);
    return weight;
  };
}, 120_000);
afterAll(() => service?.close());

const shown = () => walked.filter(({ status }) => status === 200);

test("links and filters lead to every page, and each is there", () => {
  expect(missed).toEqual([]);
  expect(walked.filter(({ status }) => status >= 400).map(({ path, status }) => [path, status])).toEqual([]);
});

test("no page loads more than 200 kB, its files included", async () => {
  for (const { path, html } of shown()) {
    const files = await Promise.all(loadedBy(html).map(weightOf));
    expect(files.length).toBeGreaterThan(3);
    const bytes = files.reduce((sum, one) => sum + one, Buffer.byteLength(html));
    expect([path, bytes, bytes <= BYTES_MAX]).toEqual([path, bytes, true]);
  }
});

test("every link to the documentation leads to a page, and to a heading of it", async () => {
  const links = new Set(
    walked.flatMap(({ html }) => [...html.matchAll(/href="(\/docs[^"]*)"/g)].map(([, link = ""]) => link)),
  );
  expect(links.size).toBeGreaterThan(15);
  for (const link of links) {
    const { pathname, hash } = new URL(link, "http://console");
    const { status, text } = await service.get(pathname);
    expect([link, status]).toEqual([link, 200]);
    expect([link, hash === "" || text.includes(`id="${hash.slice(1)}"`)]).toEqual([link, true]);
  }
});

test("nothing waits for a script: each page has its heading and its content, and no script stops the first paint", () => {
  for (const { path, html } of shown()) {
    const [, main = ""] = /<main[^>]*>([\s\S]*)<\/main>/.exec(html) ?? [];
    const [, heading = ""] = /<h1[^>]*>([\s\S]*?)<\/h1>/.exec(main) ?? [];
    const textOf = (markup: string) => markup.replace(/<[^>]+>/g, " ").trim();
    expect([path, textOf(heading).length > 0, textOf(main).length > 60]).toEqual([path, true, true]);
    for (const [script] of html.matchAll(/<script[^>]*>/g))
      expect([path, script]).toEqual([path, expect.stringMatching(/ src="/)]);
    for (const [script] of html.matchAll(/<script[^>]*>/g))
      expect([path, script]).toEqual([path, expect.stringMatching(/ type="module"| defer/)]);
    expect([path, / style="| on[a-z]+="/.exec(html.replaceAll(/>[^<]*</g, "><"))]).toEqual([path, null]);
  }
});

test("every form is sent without a script: it has a route, and a button", () => {
  const routes = consoleRoutes(true).map(({ method, path }) => ({
    method,
    pattern: new RegExp(`^${path.replaceAll(/:\w+/g, "[^/]+")}$`),
  }));
  let forms = 0;
  for (const { path, html } of shown()) {
    for (const [form] of html.matchAll(/<form[\s\S]*?<\/form>/g)) {
      // Only a script can ask a browser for a passkey, and the page says so.
      if (form.includes("data-add-passkey")) {
        expect([path, html.includes("<noscript>")]).toEqual([path, true]);
        continue;
      }
      const [, method = "get"] = /^<form[^>]* method="(\w+)"/.exec(form) ?? [];
      const [, action = ""] = /^<form[^>]* action="([^"?]*)/.exec(form) ?? [];
      const isKnown = routes.some((one) => one.method === method.toUpperCase() && one.pattern.test(action));
      const hasButton = /<button(?![^>]* hidden)[^>]* type="submit"/.test(form);
      expect([path, method, action, isKnown, hasButton]).toEqual([path, method, action, true, true]);
      forms++;
    }
  }
  expect(forms).toBeGreaterThan(100);
});
