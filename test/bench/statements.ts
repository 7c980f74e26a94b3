import { Database } from "bun:sqlite";
import assert from "node:assert/strict";
import { createReadStream, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { type Filled, filledFolder } from "./filled.ts";
import { costOf, ledgerFileOf, type Running, runCommand, startServer } from "./holdfast.ts";
import { DAY_MS } from "./load.ts";
import { inWords, type Scale, say } from "./scale.ts";
import { median } from "./statistics.ts";
import { atMost, noted, type Row, under } from "./table.ts";
import { slowest, startWaiting, WARM_MS } from "./waiting.ts";

const FORMATS = ["csv", "jsonl"] as const;
type Format = (typeof FORMATS)[number];

/** How much more memory a statement may take than a shorter one, and two than one: none, but for noise. */
const MEMORY_TIMES_MAX = 1.2;
const MONTH_DAYS = 31;
const EMPTY_TIMES_MAX = 1.2;
const EMPTY_RUNS = 15;
const QUIET_MS = 10_000;
/** How long a reader takes nothing of its statement. */
const IDLE_MS = 5_000;
const NEW_LINE = 10;

/**
 * The statement of an organisation with most postings of the large folder, which were all made within a month: by the command line
 * and from the console, as CSV and as JSON Lines. Its sums are held against the balances.
 */
export async function measureStatements(scale: Scale): Promise<Row[]> {
  const filled = await filledFolder(scale.warrantsLarge, scale.folder);
  const [account, shorter] = accountsOf(filled);
  if (!account || !shorter) throw new Error("the folder has no two organisations in one mode");
  const rows = [
    ...(await byCommand(filled, account, shorter, scale)),
    await emptyPeriod(filled, account, scale),
    ...(await byConsole(filled, account)),
  ];
  return under(`A statement of a month of ${inWords(account.postings)} postings`, rows);
}

type Account = { readonly organisationId: string; readonly postings: number };

/** The organisations of the measured one's mode, that with the most postings first. */
function accountsOf({ data, facts }: Filled): readonly Account[] {
  const database = new Database(ledgerFileOf(data), { readonly: true });
  const found = database
    .query(
      `SELECT organisation_id AS organisationId, count(*) AS postings FROM postings
         JOIN accounts ON accounts.position = account JOIN scopes ON scopes.position = scope
       WHERE mode = ? GROUP BY account ORDER BY postings DESC`,
    )
    .all(facts.mode) as Account[];
  database.close();
  return found;
}

const ownOf = ({ organisationId }: Account, { facts }: Filled): readonly string[] => [
  ...["--organisation", organisationId, "--mode", facts.mode],
];

const inDays = (days: number): string => new Date(Date.now() + days * DAY_MS).toISOString();

async function byCommand(
  filled: Filled,
  account: Account,
  shorter: Account,
  { folder }: Scale,
): Promise<Row[]> {
  const file = join(folder, "statement");
  const exported = async (of: Account, format: Format) => {
    rmSync(file, { force: true });
    say(`statements: ${inWords(of.postings)} postings, ${format}`);
    const period = ["--from", inDays(-MONTH_DAYS), "--to", inDays(1)];
    const asked = ["--format", format, ...ownOf(of, filled), ...period];
    return costOf(filled.data, "statements", "export", file, ...asked);
  };
  const rows: Row[] = [];
  for (const format of FORMATS) {
    const short = await exported(shorter, format);
    const whole = await exported(account, format);
    await checkSums(filled, account, file, format);
    const perSecond = inWords(Math.round(account.postings / whole.seconds));
    rows.push(
      noted(`by the command line, ${format}`, `${whole.seconds.toFixed(1)} s (${perSecond} lines/s)`),
      atMost(
        `its memory, beside that of ${inWords(shorter.postings)} postings`,
        whole.megabytes / short.megabytes,
        { required: MEMORY_TIMES_MAX },
        " times",
        `${whole.megabytes} MB`,
      ),
    );
  }
  return rows;
}

const BALANCES = ["available", "held", "paid"] as const;

/** Every posting has a line; the changes add up to the balances after the last one, which are those of the organisation. */
async function checkSums(filled: Filled, account: Account, file: string, format: Format): Promise<void> {
  const sums = { available: 0n, held: 0n, paid: 0n };
  const after = { available: 0n, held: 0n, paid: 0n };
  let lines = 0;
  let columns: readonly string[] = [];
  for await (const text of createInterface({ input: createReadStream(file) })) {
    if (format === "csv" && columns.length === 0) {
      columns = text.split(",");
      continue;
    }
    lines += 1;
    const cells = text.split(",");
    // No cell of the bench has a comma or quotation mark in it.
    const line =
      format === "jsonl"
        ? JSON.parse(text)
        : Object.fromEntries(columns.map((name, at) => [name, cells[at]]));
    for (const name of BALANCES) {
      sums[name] += BigInt(line[name]);
      after[name] = BigInt(line[`${name}_after`]);
    }
  }
  const [shown] = runCommand(filled.data, "balances", "show", ...ownOf(account, filled)).balances;
  const balances = Object.fromEntries(BALANCES.map((name) => [name, BigInt(shown[name])]));
  assert.equal(lines, account.postings, "lines, and postings of the account");
  assert.deepEqual(sums, balances, "the sums of the statement, and the balances");
  assert.deepEqual(after, balances, "the end of the statement, and the balances");
}

/** A period without postings, in the account of many and in one of none. */
async function emptyPeriod(filled: Filled, { organisationId }: Account, { folder }: Scale): Promise<Row> {
  const file = join(folder, "empty");
  const timed = async (mode: string): Promise<number> => {
    rmSync(file, { force: true });
    const own = ["--organisation", organisationId, "--mode", mode, "--from", inDays(1)];
    return (await costOf(filled.data, "statements", "export", file, ...own)).seconds * 1_000;
  };
  say("statements: of an empty period");
  const times: { many: number; none: number }[] = [];
  for (let run = 0; run < EMPTY_RUNS; run++)
    times.push({ many: await timed(filled.facts.mode), none: await timed("live") });
  return atMost(
    "of an empty period, beside an account without postings",
    median(times.map(({ many, none }) => many / none)),
    { required: EMPTY_TIMES_MAX },
    " times",
    `${median(times.map(({ many }) => many)).toFixed(0)} ms`,
  );
}

async function byConsole(filled: Filled, { postings }: Account): Promise<Row[]> {
  await using server = await startServer(filled.data);
  const cookie = await signIn(server, filled);
  await using client = startWaiting({ url: server.url, secret: filled.facts.secret }, filled.idsFile);
  await Bun.sleep(WARM_MS);
  const quiet = await client.during(() => Bun.sleep(QUIET_MS));
  const rows = [noted("slowest request when no statement is read", `${quiet.slowestMs.toFixed(1)} ms`)];
  const peaks: number[] = [];
  for (const format of FORMATS) {
    say(`statements: ${format}, from the console`);
    let seconds = 0;
    const waited = await client.during(async () => {
      const startedAt = performance.now();
      const lines = await linesOf(await openFile(server, cookie, format));
      seconds = (performance.now() - startedAt) / 1_000;
      // Others open warrants meanwhile.
      assert.ok(lines >= postings, `${lines} lines of ${postings} postings`);
    });
    peaks.push(peakOf(server));
    rows.push(
      noted(`from the console, ${format}`, `${seconds.toFixed(1)} s`),
      slowest(`while it is read, ${format}`, waited),
    );
  }
  say("statements: a reader that takes nothing");
  const idle = await openFile(server, cookie, "csv");
  await Bun.sleep(IDLE_MS);
  await idle.body?.cancel();
  const [first = 1, both = 1] = peaks;
  const beside = (what: string, peak: number): Row =>
    atMost(what, peak / first, { required: MEMORY_TIMES_MAX }, " times", `${peak} MB`);
  return [
    ...rows,
    beside("the server's memory after both, beside after one", both),
    beside("and after a reader that took nothing", peakOf(server)),
  ];
}

async function signIn({ url }: Running, { facts }: Filled): Promise<string> {
  const { email, password, mode } = facts;
  const response = await fetch(`${url}/auth/session`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ email, password, mode }),
  });
  const cookie = response.headers.get("set-cookie")?.split(";")[0];
  if (cookie === undefined) throw new Error(`no sign-in: ${response.status} ${await response.text()}`);
  return cookie;
}

async function openFile({ url }: Running, cookie: string, format: Format): Promise<Response> {
  const response = await fetch(`${url}/console/money/statements/file?format=${format}`, {
    headers: { cookie },
  });
  if (!response.ok) throw new Error(`${response.status} ${await response.text()}`);
  return response;
}

async function linesOf({ body }: Response): Promise<number> {
  let lines = 0;
  for await (const chunk of body ?? []) for (const byte of chunk) if (byte === NEW_LINE) lines += 1;
  return lines;
}

/** The most memory that it ever had, in MB. */
function peakOf({ pid }: Running): number {
  const kilobytes = /VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
  return Math.round(Number(kilobytes ?? 0) / 1_024);
}
