import { readFileSync } from "node:fs";
import { type Filled, filledFolder } from "./filled.ts";
import { type Running, startServer } from "./holdfast.ts";
import { load } from "./load.ts";
import { type Place, QUERIES, type Query } from "./queries.ts";
import { inWords, type Scale, say, WARRANTS_SMALL } from "./scale.ts";
import { median } from "./statistics.ts";
import { compareSweeps } from "./sweeps.ts";
import { atMost, noted, type Row, under } from "./table.ts";

const RATIO_MAX = { required: 1.2 };
const PAGE = 25;
const SAMPLES = 25;
/**
 * How often a query that seems a little slow is measured again: among hundreds of queries, some seem slow by
 * chance.
 */
const SAMPLES_AGAIN = 100;
const RATIO_OF_CHANCE_MAX = 2;
/** The most time for the samples of a query. One that reads many rows shows it in few samples. */
const SAMPLING_MS_MAX = 1_500;
/**
 * How long a server is used. It audits its ledger a minute after its start, so it is replaced before that.
 */
const SERVED_MS_MAX = 40_000;
const WARM_MS = 3_000;
const LOAD_ROUNDS_MAX = 4;
const LOAD_SECONDS = 2;
const MISSES_SHOWN_MAX = 20;

type Compared = {
  readonly query: Query;
  readonly rows: number;
  readonly smallMs: number;
  readonly largeMs: number;
};

/** How much longer reads, lists, counts, opens and sweeps take with a million warrants than with 10,000. */
export async function measureLists(scale: Scale): Promise<Row[]> {
  const small = await filledFolder(WARRANTS_SMALL, scale.folder);
  const large = await filledFolder(scale.warrantsLarge, scale.folder);
  const compared = await compareQueries(small, large);
  const rows = [
    ...groupRows(compared),
    ...(await compareLoads(small, large, scale)),
    ...(await compareSweeps(small, large, RATIO_MAX)),
  ];
  return [
    ...under(`With ${inWords(scale.warrantsLarge)} warrants, beside ${inWords(WARRANTS_SMALL)}`, rows),
    ...missRows(compared),
  ];
}

const ratioOf = ({ smallMs, largeMs }: Compared): number => largeMs / smallMs;

/** The worst query of each group. Queries that find nothing are a group of their own. */
function groupRows(compared: readonly Compared[]): Row[] {
  const groups = Map.groupBy(compared, ({ query, rows }) =>
    query.paged && rows === 0 ? "lists with an empty result" : query.group,
  );
  return [...groups].map(([group, members]) => {
    const worst = members.toSorted((one, other) => ratioOf(other) - ratioOf(one))[0] as Compared;
    const which = members.length === 1 ? "" : `, the worst of ${members.length}`;
    return atMost(group, ratioOf(worst), RATIO_MAX, " times", `${worst.largeMs.toFixed(2)} ms${which}`);
  });
}

/** The queries that take too long, the worst first. */
function missRows(compared: readonly Compared[]): Row[] {
  const misses = compared
    .filter((one) => ratioOf(one) > RATIO_MAX.required)
    .toSorted((one, other) => ratioOf(other) - ratioOf(one));
  if (misses.length === 0) return [];
  const rows = misses.slice(0, MISSES_SHOWN_MAX).map((one) => {
    const times = `${one.smallMs.toFixed(2)} → ${one.largeMs.toFixed(2)} ms`;
    return noted(one.query.name, `${ratioOf(one).toFixed(1)} times, ${times}, ${one.rows} rows`);
  });
  const heading = `Over ${RATIO_MAX.required} times: ${misses.length} of ${compared.length} queries, the worst first`;
  return under(heading, rows);
}

async function compareQueries(small: Filled, large: Filled): Promise<Compared[]> {
  const waiting = [...QUERIES];
  const compared: Compared[] = [];
  while (waiting.length > 0) {
    say(`lists: ${waiting.length} of ${QUERIES.length} queries are left`);
    await using servers = await startBoth(small, large);
    const places = [await placeOf(servers.small, small), await placeOf(servers.large, large)] as const;
    await warmUp(places);
    const until = performance.now() + SERVED_MS_MAX;
    while (performance.now() < until) {
      const query = waiting.shift();
      if (!query) break;
      const result = await compare(query, ...places);
      if (result) compared.push(result);
    }
  }
  return compared;
}

/** Null where only the large folder has anything to find. */
async function compare(query: Query, small: Place, large: Place): Promise<Compared | null> {
  // Both pages must have the same length, so that only the size of the ledgers differs.
  const found = [await rowsOf(query, small), await rowsOf(query, large)] as const;
  const rows = Math.min(...found);
  if (rows === 0 && Math.max(...found) > 0) return null;
  const take = async (samples: number): Promise<Compared> => {
    const figures = { small: [] as number[], large: [] as number[] };
    const until = performance.now() + SAMPLING_MS_MAX;
    for (let sample = 0; sample < samples && performance.now() < until; sample++) {
      figures.small.push((await ask(query, small, rows)).tookMs);
      figures.large.push((await ask(query, large, rows)).tookMs);
    }
    return { query, rows, smallMs: median(figures.small), largeMs: median(figures.large) };
  };
  const first = await take(SAMPLES);
  const maybeByChance = ratioOf(first) > RATIO_MAX.required && ratioOf(first) < RATIO_OF_CHANCE_MAX;
  return maybeByChance ? take(SAMPLES_AGAIN) : first;
}

async function rowsOf(query: Query, place: Place): Promise<number> {
  const { text } = await ask(query, place, PAGE);
  return query.paged ? (JSON.parse(text) as { readonly data: readonly unknown[] }).data.length : 1;
}

async function ask(query: Query, place: Place, limit: number) {
  const path = `${query.pathOf(place)}${query.paged ? `&limit=${Math.max(limit, 1)}` : ""}`;
  const startedAt = performance.now();
  const response = await fetch(`${place.url}${path}`, { headers: query.headersOf(place) });
  const text = await response.text();
  const tookMs = performance.now() - startedAt;
  if (!response.ok) throw new Error(`${path}: ${response.status} ${text}`);
  return { tookMs, text };
}

async function warmUp(places: readonly Place[]): Promise<void> {
  const until = performance.now() + WARM_MS;
  for (let turn = 0; performance.now() < until; turn++) {
    const query = QUERIES[turn % QUERIES.length] as Query;
    for (const place of places) await ask(query, place, PAGE);
  }
}

async function startBoth(small: Filled, large: Filled) {
  await using starting = new AsyncDisposableStack();
  const servers = {
    small: starting.use(await startServer(small.data)),
    large: starting.use(await startServer(large.data)),
  };
  const started = starting.move();
  return { ...servers, [Symbol.asyncDispose]: () => started.disposeAsync() };
}

async function placeOf({ url }: Running, { facts, idsFile }: Filled): Promise<Place> {
  const ids = readFileSync(idsFile, "utf8").split("\n");
  const { email, password, mode, secret } = facts;
  const signedIn = await fetch(`${url}/auth/session`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ email, password, mode }),
  });
  const [cookie = ""] = signedIn.headers.get("Set-Cookie")?.split(";") ?? [];
  const firstOf = async (path: string, headers: Readonly<Record<string, string>>): Promise<string> => {
    const { data } = (await (await fetch(url + path, { headers })).json()) as {
      readonly data: readonly { readonly id: string }[];
    };
    return data[0]?.id ?? "";
  };
  return {
    ...{ url, facts, cookie },
    middle: ids[Math.floor(ids.length / 2)] ?? "",
    settled: await firstOf("/v1/warrants?state=released&limit=1", { Authorization: `Bearer ${secret}` }),
    auditEntry: await firstOf("/v1/console/audit-log?limit=1", { Cookie: cookie }),
  };
}

async function compareLoads(small: Filled, large: Filled, { folder, rounds }: Scale): Promise<Row[]> {
  await using servers = await startBoth(small, large);
  const rateOf = (kind: "open" | "read", size: "small" | "large") => {
    const { facts, idsFile } = size === "small" ? small : large;
    const target = { url: servers[size].url, secret: facts.secret };
    return load({ target, kind, seconds: LOAD_SECONDS, folder, idsFile }).rate;
  };
  const figures = Array.from({ length: Math.min(rounds, LOAD_ROUNDS_MAX) + 1 }, () => ({
    reads: rateOf("read", "small") / rateOf("read", "large"),
    opens: rateOf("open", "small") / rateOf("open", "large"),
  }));
  // The first round is left out: the compiler is still at work in it.
  const warm = figures.slice(1);
  return [
    atMost("opens, under load", median(warm.map(({ opens }) => opens)), RATIO_MAX, " times"),
    atMost("reads by id, under load", median(warm.map(({ reads }) => reads)), RATIO_MAX, " times"),
  ];
}
