/**
 * `bun run browser`: every page of the console, of an organisation that has been at work and of one that has not, and the pages
 * beside it, in headless Chromium. axe looks at each, light, dark and on a phone. With `CONSOLE_PICTURES` they are for people too.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdirSync } from "node:fs";
import type { Page } from "playwright-core";
import type { Role } from "../../src/core/roles.ts";
import { expectCareOf, openChromium, PHONE, pixelsBesidePage, WALK_MS } from "../support/chromium.ts";
import { openConsole } from "../support/console.ts";
import { walkConsole } from "../support/console-walk.ts";
import { liveIn } from "../support/lived-in.ts";
import { openMarket } from "../support/market.ts";
import { PASSWORD, type TestOrganisation } from "../support/organisations.ts";
import { setThreshold } from "../support/passkeys.ts";
import { type Receiver, startReceiver } from "../support/receiver.ts";
import { type Service, startTestServer } from "../support/server.ts";
import { SCRIPTED, signedIn } from "../support/stage.ts";

let service: Service;
let receiver: Receiver;
let chromium: Awaited<ReturnType<typeof openChromium>>;
let base: string;
const problems: string[] = [];
beforeAll(async () => {
  if (process.env.CONSOLE_PICTURES) mkdirSync(process.env.CONSOLE_PICTURES, { recursive: true });
  [receiver, service] = [startReceiver(), await startTestServer()];
  receiver.answer(({ path }) => new Response("no such hook", { status: path.endsWith("1") ? 500 : 200 }));
  base = baseOf(service);
  chromium = await openChromium(problems);
}, WALK_MS);
afterAll(async () => {
  await chromium?.close();
  await service?.close();
  receiver?.stop();
});

const baseOf = ({ url }: Service) => `http://localhost:${new URL(url).port}`;

async function signIn(email: string): Promise<Page> {
  const page = await chromium.openPage();
  await page.goto(`${base}/console`);
  await page.fill("#email", email);
  await page.fill("#password", PASSWORD);
  await page.click("button[type=submit]");
  await page.getByRole("heading", { name: "Overview" }).waitFor();
  return page;
}

async function livedIn({ id: organisationId, people }: TestOrganisation): Promise<void> {
  const market = openMarket();
  const ctx = { ...service.ctx, ...SCRIPTED, x402: { ...market.x402, underWay: service.ctx.x402.underWay } };
  const caller = (role: Exclude<Role, "viewer">) =>
    signedIn(ctx, { kind: "person", userId: people[role].id, role, organisationId, mode: "live" });
  const callers = {
    operator: await caller("operator"),
    admin: await caller("admin"),
    owner: await caller("owner"),
  };
  await liveIn(
    { ctx, organisationId, mode: "live", ...callers },
    market,
    receiver.url("").replace(/\/$/, ""),
  );
}

type Shown = { readonly route: string; readonly path: string };

/** Every page that the owner reaches by links. */
async function pagesOf(home: TestOrganisation): Promise<readonly Shown[]> {
  const browser = openConsole(service, home.people.owner.as);
  const { walked } = await walkConsole({ searches: [], ask: (path) => browser.get(path) });
  return walked.filter(({ hasPerson, status }) => hasPerson && status === 200);
}

/** One address of each page, of those of money in each of their states, and how its pictures are called. */
const addressesOf = (shown: readonly Shown[]): ReadonlyMap<string, string> =>
  new Map(
    shown.toReversed().map(({ route, path }) => [route.startsWith(MONEY) ? stateOf(path) : route, path]),
  );

const MONEY = "/console/money/";

/** The address of a page without ids, names and places in a list. */
function stateOf(path: string): string {
  const { pathname, searchParams } = new URL(path, base);
  const of = ["status", "as"].map((name) => searchParams.get(name)).filter((value) => value !== null);
  return [pathname, searchParams.has("payee") ? "one" : "", ...of].filter((part) => part !== "").join("-");
}

async function lookAt(page: Page, addresses: ReadonlyMap<string, string>, kind: string): Promise<void> {
  for (const [route, path] of addresses) {
    await expectCareOf(page, base, path, `/${kind}${route.replaceAll(":", "")}`);
  }
}

/** Whatever the names and notes on them are. */
async function expectFitsPhone(page: Page, shown: readonly Shown[]): Promise<void> {
  await page.setViewportSize(PHONE);
  const tooWide = [];
  for (const { path } of shown) {
    await page.goto(base + path);
    if ((await pixelsBesidePage(page)) > 0) tooWide.push(path);
  }
  expect(tooWide).toEqual([]);
}

test(
  "every page of an organisation that has been at work",
  async () => {
    const home = await service.organisation();
    await livedIn(home);
    // Above it a person signs.
    await setThreshold(service, home, "1");
    const page = await signIn(home.people.owner.email);
    const shown = await pagesOf(home);
    await lookAt(page, addressesOf(shown), "full");
    await expectFitsPhone(page, shown);
    await page.context().close();
  },
  10 * WALK_MS,
);

test(
  "every page of an organisation in which nothing has happened",
  async () => {
    const home = await service.organisation(0n);
    const page = await signIn(home.people.owner.email);
    await lookAt(page, addressesOf(await pagesOf(home)), "empty");
    await page.context().close();
  },
  10 * WALK_MS,
);

test(
  "the pages beside the console: signing in, the receipt, the documentation and its search, the API",
  async () => {
    const home = await service.organisation();
    const { id } = await service.opened(home);
    await service.post(`/v1/warrants/${id}/release`, {}, { as: home.people.operator.as });
    const page = await chromium.openPage();
    for (const path of [
      ...["/console/sign-in", "/console/enter", "/console/nowhere", "/reset-password", `/t/${id}`],
      ...[
        "/docs",
        "/docs/start",
        "/docs/api-reference/errors",
        "/docs/search?q=webhook",
        "/docs/api-reference",
      ],
    ])
      await expectCareOf(page, base, path, `/beside${path.replace(/\?.*/, "")}`);
    await page.context().close();
  },
  WALK_MS,
);

test(
  "the first run",
  async () => {
    await using fresh = {
      service: await startTestServer(),
      [Symbol.asyncDispose]: async () => fresh.service.close(),
    };
    const page = await chromium.openPage();
    const at = baseOf(fresh.service);
    await expectCareOf(page, at, "/console/sign-in", "/first/not-set-up");
    await expectCareOf(page, at, "/console/set-up", "/first/set-up");
    await page.context().close();
  },
  WALK_MS,
);

test("no page broke its own policy, and no script failed", () => {
  expect(problems).toEqual([]);
});
