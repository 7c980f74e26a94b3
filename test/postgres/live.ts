/** What open pages of one instance are told of what another has committed (docs/console, "Live"). */
import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import type { SQL } from "bun";
import type { PersonCaller } from "../../src/core/roles.ts";
import { SECOND_MS } from "../../src/core/time.ts";
import { callerNowIn } from "../../src/services/auth/callers.ts";
import { switchMode } from "../../src/services/auth/switch-mode.ts";
import { createLive, type Live } from "../../src/services/live/live.ts";
import { newsTextOf } from "../../src/services/live/news.ts";
import type { PostgresStoreOptions } from "../../src/store/postgres/store.ts";
import { eventsOf, type ServerEvent } from "../support/event-stream.ts";
import { must } from "../support/organisations.ts";
import { type Postgres, startPostgres } from "../support/postgres-server.ts";
import { createStage, open, type Stage, warrantIn } from "../support/stage.ts";
import { createTimers } from "../support/timers.ts";
import { createConnections } from "./connections.ts";
import { type Instance, inOneBatch, openInstance } from "./store-context.ts";

const TEST_MS = 120_000;

let postgres: Postgres;
let sql: SQL;
let here: Instance;
let there: Instance;
let home: Stage;
let elsewhere: Stage;
let url: string;
let live: Live;
let timers: ReturnType<typeof createTimers>;
/** How often a stream has looked at its reader's sign-in. */
let looks: number;
const { connectTo, closing, closeAll } = createConnections(() => postgres.port);

async function instance(options: Partial<PostgresStoreOptions> = {}): Promise<Instance> {
  const opened = await openInstance(url, {}, { newsTextOf, ...options });
  closing.push(opened.close);
  return opened;
}

/** The same organisation, as another instance sees it. */
const at = ({ ctx }: Instance, stage: Stage): Stage => ({ ...stage, ctx });

beforeAll(async () => {
  postgres = await startPostgres();
  url = await postgres.createDatabase();
  sql = connectTo(url, { max: 4 });
  [here, there] = [await instance(), await instance()];
  [home, elsewhere] = [await createStage(here.ctx), await createStage(here.ctx)];
}, TEST_MS);
afterAll(async () => {
  await closeAll();
  await postgres.close();
}, TEST_MS);
beforeEach(() => {
  timers = createTimers();
  looks = 0;
  const callerNow = callerNowIn(here.ctx);
  live = createLive({
    store: here.store,
    callerNow(signInHash) {
      looks += 1;
      return callerNow(signInHash);
    },
    // Without signs of life: nothing but news makes a stream look at its reader's sign-in.
    after: (ms, then) => (ms > SECOND_MS ? { cancel() {} } : timers.after(ms, then)),
    randomByte: () => 7,
  });
  closing.push(live.close);
});

/** An open page, and what its reader is told. */
function page(reader: PersonCaller) {
  const events = eventsOf(must(live.open(reader, live.position())));
  const next = async (): Promise<ServerEvent | null> => (await timers.fireUntil(events.next())).value;
  return {
    next,
    /** What changed; null: that anything may have. */
    nextNames: async (): Promise<readonly string[] | null> =>
      JSON.parse((await next())?.data ?? "{}").names?.toSorted() ?? null,
  };
}

const openAt = async (stage: Stage): Promise<string> => warrantIn(await open(stage, stage.operator)).id;

test(
  "a page is told by name of what another instance commits, and nothing of another organisation and of the log",
  async () => {
    const [reader, other] = [page(home.operator), page(elsewhere.operator)];
    const id = await openAt(at(there, elsewhere));
    expect(await other.nextNames()).toEqual(["money", "warrants", id]);
    const others = looks;
    expect(await there.store.extendLog(1_000)).toBeGreaterThan(0);
    const opened = await openAt(at(there, home));
    expect(await reader.nextNames()).toEqual(["money", "warrants", opened]);
    expect([others, looks]).toEqual([1, 2]);
  },
  TEST_MS,
);

test(
  "of a commit with many names, pages of its organisation are told that anything may have changed, and others nothing",
  async () => {
    const [reader, other] = [page(home.operator), page(elsewhere.operator)];
    const stage = at(there, home);
    const opens = Array.from({ length: 40 }, () => () => open(stage, stage.operator));
    await inOneBatch(there, sql, home.organisationId, opens);
    expect(await reader.nextNames()).toBeNull();
    const id = await openAt(at(there, elsewhere));
    expect(await other.nextNames()).toEqual(["money", "warrants", id]);
  },
  TEST_MS,
);

test.each<[string, () => Promise<unknown>]>([
  ["without news", async () => openAt(at(await instance({ newsTextOf: () => null }), elsewhere))],
  ["of another version", async () => openAt(at(await instance({ version: "0.2.0" }), elsewhere))],
  [
    "of a version that knows no news",
    () => sql`INSERT INTO commits (id, instance, at) VALUES ('of-another', 'another',
      (extract(epoch FROM clock_timestamp()) * 1000)::int8)`,
  ],
])(
  "after a commit %s anything may have changed everywhere",
  async (_, commit) => {
    const reader = page(home.operator);
    await commit();
    expect(await reader.nextNames()).toBeNull();
  },
  TEST_MS,
);

test(
  "a person who goes to the other mode at another instance ends the open pages of this one",
  async () => {
    const reader = page(home.admin);
    must(await switchMode(there.ctx, home.admin, "sandbox"));
    expect(await reader.next()).toMatchObject({ type: "end", data: '{"why":"other_mode"}' });
  },
  TEST_MS,
);
