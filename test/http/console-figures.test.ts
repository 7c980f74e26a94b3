import { afterAll, beforeAll, expect, test } from "bun:test";
import { consoleRoutes } from "../../src/console/routes.ts";
import { setAgentStatus } from "../../src/services/admin/agents.ts";
import { MACHINE } from "../../src/services/admin/authority.ts";
import { setPasskeyThreshold } from "../../src/services/admin/switches.ts";
import { consoleOfShell } from "../support/console.ts";
import { AMOUNT, addressOf, type Everything, makeEverything } from "../support/every-page.ts";
import { openMarket } from "../support/market.ts";
import { must, type TestOrganisation } from "../support/organisations.ts";
import { enrol } from "../support/passkeys.ts";
import { type ShellService, startTestShell } from "../support/server.ts";

/** How every page of the console shows amounts and times: in units and in words, with the exact value on hover. Badges begin with a capital. */

let service: ShellService;
let home: TestOrganisation;
let all: Everything;
let passkey: string;
beforeAll(async () => {
  service = startTestShell({ x402: openMarket().x402 });
  home = await service.organisation();
  all = await makeEverything(service, home);
  passkey = String((await enrol(service, home.people.owner, service.url)).credential.id);
  must(await setAgentStatus(service.ctx, MACHINE, { agent_id: all.agent, status: "paused" }));
  must(await setPasskeyThreshold(service.ctx, MACHINE, { organisation_id: home.id, amount: AMOUNT }));
});
afterAll(() => service?.close());

const pages = consoleRoutes(true).filter(({ kind }) => kind === "page");

/**
 * The text of a page, apart from what is shown as it is: pictures, documents, code, and what stands in fields or beside
 * them as an example.
 */
async function textOf(html: string, besides: string): Promise<string> {
  const rest = new HTMLRewriter()
    .on(`head, svg, pre, code, textarea, option, .field .hint, ${besides}`, {
      element: (one) => void one.remove(),
    })
    .transform(html);
  return rest.replace(/<[^>]+>/g, " ").replace(/&nbsp;|\u00a0/g, " ");
}

test.each(pages.map(({ path }) => path))("%s", async (path) => {
  const address =
    path === "/console/account/remove-passkey"
      ? `${path}?passkey=${encodeURIComponent(passkey)}`
      : addressOf(all, path);
  const { status, html } = await consoleOfShell(service)(home.people.owner.as).get(address);
  expect([path, status]).toEqual([path, 200]);
  const text = await textOf(html, ".amount, time");
  // Neither an amount nor a time stands in the text by itself.
  expect([path, /\d USDC/.exec(text)?.[0]]).toEqual([path, undefined]);
  expect([path, text.includes(AMOUNT)]).toEqual([path, false]);
  expect([path, /\d{4}-\d\d-\d\d[T ]\d\d:\d\d|\d{1,2} [A-Z][a-z]{2} 20\d\d/.exec(text)?.[0]]).toEqual([
    path,
    undefined,
  ]);
  for (const [, words] of html.matchAll(/<span class="badge[^>]*>([^<]*)/g))
    expect([path, words]).toEqual([path, expect.stringMatching(/^[A-Z0-9]/)]);
  // What does, has the exact value on hover.
  for (const [tag] of html.matchAll(/<(?:span class="amount"|time)[^>]*>/g))
    expect(tag).toMatch(
      /^<span class="amount" title="-?\d+ in the smallest unit of [^"]+">$|^<time datetime="[^"]+Z" title="\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC">$/,
    );
});

test("the pages have amounts and times to look at", async () => {
  const browser = consoleOfShell(service)(home.people.owner.as);
  for (const path of ["/console/warrants", "/console/agents/:id", "/console/audit-log", "/console/money"]) {
    const { html } = await browser.get(addressOf(all, path));
    expect([path, html.includes('class="amount"'), html.includes("<time ")]).toEqual([path, true, true]);
  }
});
