import { expect } from "bun:test";
import { startServer } from "../../src/app.ts";
import { readConfig, type Secrets } from "../../src/config.ts";
import { receiptPages } from "../../src/console/receipt/page.ts";
import { parseSchema } from "../../src/core/clauses/schema.ts";
import { isRefusal } from "../../src/core/errors.ts";
import type { Balance } from "../../src/core/postings.ts";
import type { RateLimits } from "../../src/core/rate.ts";
import type { Given } from "../../src/core/setting-values.ts";
import { createShell, type HttpOptions } from "../../src/http/shell.ts";
import type { Context } from "../../src/services/context.ts";
import { type AllRows, openAllRows } from "./all-rows.ts";
import { cheapPasswords } from "./cheap-passwords.ts";
import {
  type Client,
  type Credentials,
  createClient,
  type Json,
  type Reply,
  type SendOptions,
} from "./client.ts";
import { createTestContext, type TestContext } from "./context.ts";
import { databaseSecrets } from "./database-settings.ts";
import { openTestLedger } from "./ledger.ts";
import { newLedgerFolder, removeLedgerFolder } from "./new-ledger.ts";
import { makeOrganisation, type TestOrganisation } from "./organisations.ts";

/** The refusal that is expected: its status, its code and, where given, how its message starts. */
export type Refused = readonly [status: number, code: string, start?: string];

/** The service under test, over a socket or without one, with helpers for tests. */
export type Service = Client & {
  readonly url: string;
  /** The link with which the first organisation is made; null where the service has no socket. */
  readonly setUpUrl: string | null;
  readonly ctx: Context & Pick<TestContext, "ledger" | "reader">;
  organisation(funds?: bigint): Promise<TestOrganisation>;
  /** A valid body of an open, with these fields changed. The deadline is always the same. */
  body(overrides?: object): { readonly [field: string]: unknown };
  /** A time some milliseconds ahead of the service's clock. */
  timeIn(ms: number): string;
  allRows(organisation: TestOrganisation): AllRows;
  /** All rows of all organisations. */
  everything(): AllRows;
  /** What is available and held of an asset. */
  balance(organisation: TestOrganisation, mode?: "live" | "sandbox", asset?: string): Balance;
  /** Sends a request that must be refused and change nothing: no hold, no trace, no key used up. */
  refuses(organisation: TestOrganisation, expected: Refused, send: () => Promise<Reply>): Promise<Reply>;
  /** Opens a warrant that must open; its body. */
  opened(organisation: TestOrganisation, body?: object, options?: SendOptions): Promise<Json>;
  /** Stops, audits the ledger and removes the folder. */
  close(): Promise<void>;
};

const HOUR_MS = 3_600_000;

function serviceOf(
  client: Client,
  url: string,
  ctx: Service["ctx"],
  folder: string,
  /** Stops it, audits the ledger and removes the folder. */
  stop: () => Promise<void>,
): Service {
  const reader = openAllRows(folder);
  const allRows = (organisation: TestOrganisation): AllRows => reader.of(organisation.id);
  const timeIn = (ms: number): string => new Date(ctx.now() + ms).toISOString();
  const deadline = timeIn(HOUR_MS);
  const body: Service["body"] = (overrides = {}) => ({
    amount: "100",
    payee: "acme",
    deadline,
    spec: { clauses: [{ kind: "http.status", equals: 200 }] },
    ...overrides,
  });
  return {
    ...client,
    url,
    setUpUrl: null,
    ctx,
    body,
    timeIn,
    allRows,
    everything: reader.all,
    organisation: (funds) => makeOrganisation(ctx, client, funds),
    balance: ({ id }, mode = "live", asset = "USDC") =>
      ctx.reader.balances.list({ organisationId: id, mode }).find((entry) => entry.asset === asset)
        ?.balance ?? { available: 0n, held: 0n, paid: 0n },
    async refuses(organisation, [status, code, start = ""], send) {
      const before = allRows(organisation);
      const reply = await send();
      const message: string = reply.body?.error?.message ?? "";
      expect([reply.status, reply.code, message.slice(0, start.length)]).toEqual([status, code, start]);
      expect(allRows(organisation)).toEqual(before);
      return reply;
    },
    async opened(organisation, overrides = {}, options = {}) {
      const reply = await client.post("/v1/warrants", body(overrides), {
        as: organisation.live.as,
        ...options,
      });
      expect([reply.status, reply.body?.state]).toEqual([201, "held"]);
      return reply.body;
    },
    async close() {
      reader.close();
      await stop();
    },
  };
}

const MANY = "1000000";

/** Settings of a server for tests: a free port, sources on this machine, one second to fetch, rates that no test reaches. */
export const testSettings = (data: string): Given => ({
  DATA: data,
  PORT: "0",
  ALLOW_NETWORKS: "127.0.0.0/8",
  X402_ALLOW_NETWORKS: "127.0.0.0/8",
  FETCH_SECONDS: "1",
  RATE_READ: MANY,
  RATE_WRITE: MANY,
  RATE_BENCH: MANY,
});

/** The real server, in this process, on a free port and a folder of its own. */
export async function startTestServer(
  settings: Given = {},
  secrets: Partial<Secrets> = {},
): Promise<Service> {
  const folder = newLedgerFolder();
  const config = readConfig({ ...testSettings(folder), ...settings }, {});
  if (isRefusal(config)) throw new Error(config.message);
  const started = await startServer(config, { ...databaseSecrets(folder), ...secrets });
  if (isRefusal(started)) throw new Error(started.message);
  const { url, ctx: real, stop } = started;
  const { port } = new URL(url);
  const ledger = openTestLedger(folder);
  const ctx: Service["ctx"] = {
    ...real,
    ledger,
    reader: ledger.reader,
    passwords: cheapPasswords(real.passwords),
    // On a busy machine the second that an evaluator has for it may be too short.
    parseSchema: async (schema) => parseSchema(schema),
  };
  const client = createClient(fetch, url, config.docsUrl ?? `http://localhost:${port}/docs`);
  const service = serviceOf(client, url, ctx, folder, async () => {
    const problems = await real.store.audit();
    ledger.close();
    await stop();
    removeLedgerFolder(folder);
    expect(problems).toEqual([]);
  });
  return { ...service, setUpUrl: started.setUpUrl };
}

/** The shell without a socket, where the clock stands still until a test moves it. */
export type ShellService = Service & {
  /** The data folder; the file is `holdfast.db`. */
  readonly folder: string;
  readonly clock: { now: number };
  /** The same service, called from another address. */
  from(address: string): Client;
  /** What a path answers as it is, be it JSON or a page. */
  ask(path: string, as: Credentials): Promise<Response>;
};

const PLENTY: RateLimits = { read: 1_000_000, write: 1_000_000, bench: 1_000_000 };

export function startTestShell({
  rateLimits = PLENTY,
  onFault = (error) => console.error(error),
  site,
  secretHashes,
  ...overrides
}: Partial<Context> &
  Partial<Pick<HttpOptions, "rateLimits" | "onFault" | "site" | "secretHashes">> = {}): ShellService {
  const ctx = createTestContext(overrides);
  const docsUrl = "https://docs.example";
  const shell = createShell(ctx, {
    docsUrl,
    rateLimits,
    trustedProxies: [],
    onFault,
    receiptPages,
    ...(site && { site }),
    ...(secretHashes && { secretHashes }),
  });
  const url = "http://localhost:8080";
  const from = (address: string) => createClient((request) => shell(request, () => address), url, docsUrl);
  const ask: ShellService["ask"] = async (path, as) =>
    shell(new Request(url + path, { headers: as }), () => "192.0.2.1");
  const { clock, folder } = ctx;
  return { ...serviceOf(from("192.0.2.1"), url, ctx, folder, ctx.close), clock, from, folder, ask };
}
