import { mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { loadedBy, type Walked, walkConsole } from "../support/console-walk.ts";
import { type Filled, filledFolder } from "./filled.ts";
import { type Running, startServer } from "./holdfast.ts";
import { inWords, type Scale, say } from "./scale.ts";
import { median } from "./statistics.ts";
import { atMost, noted, type Row, under } from "./table.ts";

const WARRANTS = 100_000;
const ANSWER_MS_MAX = { required: 100 };
const LOADED_KB_MAX = { required: 200 };
const SAMPLES = 9;
const SLOW_SHOWN_MAX = 10;
/** As a browser asks. What is transferred is counted as it comes. */
const AS_BROWSER = { "Accept-Encoding": "gzip, deflate, br, zstd", Accept: "text/html" };

type Timed = Walked & { readonly ms: number[] };
type Loaded = { readonly transferred: number; readonly whole: number };

/** How long every page of the console takes, and how much it loads, beside a hundred thousand warrants. */
export async function measurePages(scale: Scale): Promise<Row[]> {
  const into = join(scale.folder, "pages");
  mkdirSync(into);
  const filled = await filledFolder(WARRANTS, into);
  await liveIn(filled);
  await using server = await startServer(filled.data);
  const asked = await browserAt(server, filled);
  say("pages: walking the console");
  const searches = ["acct_seller_7", "is-nowhere"];
  const { walked, missed } = await walkConsole({
    searches,
    ask: async (path, hasPerson) => {
      const { status, body } = await asked(path, hasPerson);
      if (status >= 400) throw new Error(`${path}: ${status} ${body.toString()}`);
      return { status, html: body.toString() };
    },
  });
  if (missed.length > 0) throw new Error(`nothing leads to ${missed.join(", ")}`);
  say(`pages: ${walked.length} addresses of ${new Set(walked.map(({ route }) => route)).size} pages`);
  const timed: readonly Timed[] = walked.map((one) => ({ ...one, ms: [] }));
  await time(timed, asked);
  // Among thousands of answers some are slow because the machine was at something else. Those that are slow again count.
  const slow = timed.filter((one) => worstOf(one) > ANSWER_MS_MAX.required);
  for (const { ms } of slow) ms.length = 0;
  await time(slow, asked);
  const again =
    slow.length === 0 ? [] : [noted("measured again, since an answer was slow", inWords(slow.length))];
  const rows = [...sectionRows(timed), ...again, await heaviestRow(walked, asked)];
  return under(`Pages of the console, with ${inWords(WARRANTS)} warrants`, [...rows, ...slowRows(timed)]);
}

/** Takes turns, so that what else the machine does falls on all alike. */
async function time(timed: readonly Timed[], asked: Browser): Promise<void> {
  for (let sample = 0; sample < SAMPLES; sample++) {
    for (const { path, hasPerson, ms } of timed) {
      const startedAt = performance.now();
      await asked(path, hasPerson);
      ms.push(performance.now() - startedAt);
    }
  }
}

const worstOf = ({ ms }: Timed): number => Math.max(...ms);

/** The slowest answer of each section. */
function sectionRows(timed: readonly Timed[]): Row[] {
  const sections = Map.groupBy(timed, ({ route }) => route.split("/").slice(0, 3).join("/"));
  return [...sections].map(([section, members]) => {
    const slowest = members.toSorted((one, other) => worstOf(other) - worstOf(one))[0] as Timed;
    const slowestMedian = Math.max(...members.map(({ ms }) => median(ms)));
    const said = `slowest median ${slowestMedian.toFixed(1)} ms, ${members.length} addresses`;
    return atMost(`slowest answer of ${section}`, worstOf(slowest), ANSWER_MS_MAX, " ms", said);
  });
}

/** The addresses that take too long. */
const slowRows = (timed: readonly Timed[]): Row[] =>
  timed
    .filter((one) => worstOf(one) > ANSWER_MS_MAX.required)
    .toSorted((one, other) => worstOf(other) - worstOf(one))
    .slice(0, SLOW_SHOWN_MAX)
    .map((one) =>
      noted(`  ${one.path}`, `${median(one.ms).toFixed(1)} ms, worst ${worstOf(one).toFixed(1)} ms`),
    );

type Browser = Awaited<ReturnType<typeof browserAt>>;

/** The page that loads most, with all that it loads. */
async function heaviestRow(walked: readonly Walked[], asked: Browser): Promise<Row> {
  const files = new Map<string, Loaded>();
  const loaded: (Loaded & { readonly path: string })[] = [];
  for (const { path, hasPerson, html } of walked) {
    const { transferred, body } = await asked(path, hasPerson);
    const parts: Loaded[] = [{ transferred, whole: body.length }];
    for (const file of loadedBy(html)) {
      const known = files.get(file) ?? (await asked(file, true));
      const part = {
        transferred: known.transferred,
        whole: "body" in known ? known.body.length : known.whole,
      };
      files.set(file, part);
      parts.push(part);
    }
    const sum = (of: (part: Loaded) => number) => parts.reduce((total, part) => total + of(part), 0) / 1_000;
    loaded.push({ path, transferred: sum((part) => part.transferred), whole: sum((part) => part.whole) });
  }
  const heaviest = loaded.toSorted((one, other) => other.whole - one.whole)[0];
  if (!heaviest) throw new Error("no page was walked");
  const { path, transferred, whole } = heaviest;
  const said = `${transferred.toFixed(0)} kB on the way, half of all under ${median(loaded.map((one) => one.whole)).toFixed(0)} kB; ${path}`;
  return atMost("the most that a page loads, with its files", whole, LOADED_KB_MAX, " kB", said);
}

async function liveIn({ data }: Filled): Promise<void> {
  // A server makes its signing key at its first start, and vouchers need it.
  await (await startServer(data))[Symbol.asyncDispose]();
  say("pages: adding agents, people, policies, deliveries and purchases");
  const program = join(import.meta.dir, "live-in.ts");
  const facts = join(dirname(data), "facts.json");
  const { success } = Bun.spawnSync(["nice", process.execPath, program, data, facts], {
    stdout: "ignore",
    stderr: "inherit",
  });
  if (!success) throw new Error("live-in.ts failed");
}

/** Asks as the browser of a person who may see everything. */
async function browserAt({ url }: Running, { facts: { password, mode } }: Filled) {
  const signedIn = await fetch(`${url}/auth/session`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ email: "owner@bench.example", password, mode }),
  });
  const cookie = signedIn.headers.get("Set-Cookie")?.split(";")[0] ?? "";
  return async (path: string, hasPerson: boolean) => {
    const headers = { ...AS_BROWSER, ...(hasPerson && { Cookie: cookie }) };
    const response = await fetch(url + path, { headers, redirect: "manual", decompress: false });
    const raw = Buffer.from(await response.arrayBuffer());
    const body = response.headers.get("content-encoding") === "gzip" ? Buffer.from(Bun.gunzipSync(raw)) : raw;
    return { status: response.status, transferred: raw.length, body };
  };
}
