import { afterAll } from "bun:test";
import type { Page } from "playwright-core";
import type { Secrets } from "../../src/config.ts";
import type { Role } from "../../src/core/roles.ts";
import type { Given } from "../../src/core/setting-values.ts";
import { expectCareOf, openChromium, signIn, WALK_MS } from "./chromium.ts";
import { PASSWORD } from "./organisations.ts";
import { startTestServer } from "./server.ts";
import { startSource } from "./source.ts";

const FUNDS = 1_000_000_000n;

/**
 * What a file of tests at the console begins with: a server, an organisation with money, a source, a browser, and a page of nobody
 * yet. It ends with the file's tests.
 *
 * @param settings the environment, without `HOLDFAST_`
 */
export async function openAtConsole(settings: Given = {}, secrets: Partial<Secrets> = {}) {
  const problems: string[] = [];
  const [source, service] = [startSource(), await startTestServer(settings, secrets)];
  const chromium = await openChromium(problems);
  afterAll(async () => {
    await chromium.close();
    await service.close();
    source.stop();
  }, WALK_MS);
  const home = await service.organisation(FUNDS);
  // Cookies and passkeys belong to this name.
  const base = `http://localhost:${new URL(service.url).port}`;
  const page = await chromium.openPage();
  return {
    ...{ source, service, home, base, chromium, page },
    /** What went wrong in the pages. */
    problems: problems as readonly string[],
    /** Signs a person in, who is then at `next`. */
    signIn: (at: Page, role: Role, next: string) =>
      signIn(at, base, { email: home.people[role].email, password: PASSWORD }, next),
    /** As `expectCareOf`, of who is signed in on the page. */
    expectCare: (path: string) => expectCareOf(page, base, path),
  };
}
