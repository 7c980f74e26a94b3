import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SOURCE } from "../crash/program.ts";
import { databaseSettings } from "../support/database-settings.ts";
import { ENGINE } from "../support/engine.ts";
import { openTestLedger } from "../support/ledger.ts";
import { removeLedgerFolder } from "../support/new-ledger.ts";

/** The set-up link of a server as a process of its own: on the machine's log alone, and never in what the server writes by itself. */

const TEST_MS = 60_000;
const LINK = /http:\/\/localhost:\d+\/console\/set-up#([A-Za-z0-9_-]{43})/;
const OWNER = {
  ...{ organisation: "Acme", name: "Ada", email: "ada@example.com" },
  password: "velvet harbour ginger notion",
};

let root: string;
let data: string;
let running: Bun.Subprocess[] = [];
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "holdfast-first-run-"));
  data = join(root, "data");
});
afterEach(async () => {
  for (const child of running) child.kill("SIGKILL");
  await Promise.all(running.map(({ exited }) => exited));
  running = [];
  removeLedgerFolder(data);
  rmSync(root, { recursive: true, force: true });
});

/** Starts a server that logs each request. What it prints grows until it has ended. */
async function serve(...flags: readonly string[]) {
  const child = Bun.spawn([...SOURCE, "serve", ...flags], {
    cwd: root,
    env: {
      ...databaseSettings(data),
      HOLDFAST_DATA: "data",
      HOLDFAST_PORT: "0",
      HOLDFAST_LOG: "requests",
    },
    ...{ stdin: "ignore", stdout: "pipe", stderr: "pipe" },
  });
  running.push(child);
  const printed = { out: "", log: "" };
  const started = Promise.withResolvers<void>();
  const reading = Promise.all([
    (async () => {
      const decoder = new TextDecoder();
      for await (const chunk of child.stdout) {
        printed.out += decoder.decode(chunk, { stream: true });
        // With --json there is one line; else the link comes last, and an empty line after it.
        if (printed.out.endsWith("\n\n") || flags.includes("--json")) started.resolve();
      }
      started.resolve();
    })(),
    new Response(child.stderr).text().then((text) => {
      printed.log = text;
    }),
  ]);
  await started.promise;
  return {
    printed,
    async stop() {
      child.kill("SIGTERM");
      await child.exited;
      await reading;
      return printed;
    },
  };
}

async function setUp(link: string): Promise<number> {
  const { origin, hash } = new URL(link);
  const response = await fetch(`${origin}/console/set-up`, {
    method: "POST",
    headers: { Origin: origin, "Sec-Fetch-Site": "same-origin" },
    body: new URLSearchParams({ ...OWNER, token: hash.slice(1) }),
    redirect: "manual",
  });
  return response.status;
}

test(
  "a start prints a link until there is an organisation, the embedded engine a new one each time; its token is in no log and not stored",
  async () => {
    const first = await serve();
    const [, firstToken = ""] = LINK.exec(first.printed.out) ?? [];
    expect(firstToken).not.toBe("");
    expect(first.printed.out).toContain("within 30 minutes");
    await first.stop();

    const second = await serve("--json");
    const { url, set_up_url: printed } = JSON.parse(second.printed.out);
    const origin = url.replace("127.0.0.1", "localhost");
    const sameLink = `${origin}/console/set-up#${firstToken}`;
    // In a database the link is good for every instance, so the next one makes none while it is.
    const link = ENGINE === "embedded" ? printed : sameLink;
    expect(printed).toEqual(ENGINE === "embedded" ? expect.stringMatching(LINK) : null);
    const [, token = ""] = LINK.exec(link) ?? [];
    if (ENGINE === "embedded") expect(await setUp(sameLink)).toBe(401);
    expect(token === firstToken).toBe(ENGINE !== "embedded");
    expect(await setUp(link)).toBe(303);
    expect(await setUp(link)).toBe(401);
    const { log } = await second.stop();
    expect(log).toContain('"/console/set-up"');
    expect(log).not.toContain(token);
    expect(log).not.toContain(OWNER.password);
    const ledger = openTestLedger(data);
    expect(ledger.bytes().includes(token)).toBe(false);
    ledger.close();

    const third = await serve("--json");
    expect(JSON.parse(third.printed.out).set_up_url).toBeNull();
    await third.stop();
  },
  TEST_MS,
);
