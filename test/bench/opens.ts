import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { memoryOf, prepareLedger, startBeside, startServer } from "./holdfast.ts";
import { load, type Target } from "./load.ts";
import { CONNECTIONS, inWords, type Scale, say } from "./scale.ts";
import { median } from "./statistics.ts";
import { atLeast, atMost, noted, type Row } from "./table.ts";

const WARM_SECONDS = 5;
const ROUND_SECONDS = 3;
const ECHO_PORT = 18_081;
const IDS = 5_000;
/** Each second, ten times as often as by default, and never while the measurement lasts. */
const WITH_LOG = { HOLDFAST_CHECKPOINT_MS: "1000" };
const WITHOUT_LOG = { HOLDFAST_CHECKPOINT_MS: "3600000" };

export async function measureOpens(scale: Scale): Promise<Row[]> {
  return [...(await besideEcho(scale)), ...(await besideLog(scale))];
}

/** What the log's job costs the opens. Rounds are added up, since a round may begin just after a run of the job. */
async function besideLog({ folder, rounds }: Scale): Promise<Row[]> {
  const targetOf = (name: string) => {
    const data = join(folder, name);
    return { data, secret: prepareLedger(data) };
  };
  const [appended, still] = [targetOf("with-log"), targetOf("without-log")];
  await using first = await startServer(appended.data, { settings: WITH_LOG });
  await using second = await startServer(still.data, { settings: WITHOUT_LOG });
  const targets: readonly Target[] = [
    { url: first.url, secret: appended.secret },
    { url: second.url, secret: still.secret },
  ];
  for (const target of targets) load({ target, kind: "open", seconds: WARM_SECONDS, folder });
  const opened = [0, 0];
  for (let round = 0; round < rounds; round++) {
    say(`opens beside the log's job: round ${round + 1} of ${rounds}`);
    for (const [index, target] of targets.entries())
      opened[index] =
        (opened[index] ?? 0) + load({ target, kind: "open", seconds: ROUND_SECONDS, folder }).rate;
  }
  const [withJob = 0, without = 1] = opened;
  return [
    atLeast("opens while the log grows each second, beside without", withJob / without, { required: 0.95 }),
  ];
}

/**
 * Measures opens with random keys, and reads by id, beside a bare Elysia with the same validation. The two
 * take turns in short rounds, and the ratios of the rounds are compared, since absolute figures depend on the
 * machine and its load.
 */
async function besideEcho({ folder, rounds }: Scale): Promise<Row[]> {
  const data = join(folder, "opens");
  const secret = prepareLedger(data);
  await using server = await startServer(data);
  await using echo = await startBeside(join(import.meta.dir, "echo.ts"), ECHO_PORT);
  const ledger: Target = { url: server.url, secret };
  const bare: Target = { url: echo.url, secret };
  const idle = memoryOf(server);
  say("opens and reads: warming up");
  load({ target: bare, kind: "open", seconds: WARM_SECONDS, folder });
  load({ target: ledger, kind: "open", seconds: WARM_SECONDS, folder });
  const idsFile = join(folder, "ids");
  writeFileSync(idsFile, (await newestIds(ledger)).join("\n"));
  load({ target: ledger, kind: "read", seconds: WARM_SECONDS, folder, idsFile });
  const figures = Array.from({ length: rounds }, (_, round) => {
    say(`opens and reads: round ${round + 1} of ${rounds}`);
    return {
      echo: load({ target: bare, kind: "open", seconds: ROUND_SECONDS, folder }),
      opens: load({ target: ledger, kind: "open", seconds: ROUND_SECONDS, folder }),
      reads: load({ target: ledger, kind: "read", seconds: ROUND_SECONDS, folder, idsFile }),
    };
  });
  const rateOf = (name: "echo" | "opens" | "reads") =>
    `${inWords(Math.round(median(figures.map((round) => round[name].rate))))}/s`;
  const beside = `, ${CONNECTIONS} connections, beside the echo`;
  return [
    noted("echo: a bare Elysia with the same validation", rateOf("echo")),
    atLeast(
      `opens${beside}`,
      median(figures.map((it) => it.opens.rate / it.echo.rate)),
      { required: 0.17, aimed: 0.25 },
      rateOf("opens"),
    ),
    atLeast(
      `reads by id${beside}`,
      median(figures.map((it) => it.reads.rate / it.echo.rate)),
      { required: 0.4, aimed: 0.5 },
      rateOf("reads"),
    ),
    atMost("p99 of opens", median(figures.map(({ opens }) => opens.p99Ms)), { required: 8, aimed: 6 }, " ms"),
    noted("p99 of reads by id", `${median(figures.map(({ reads }) => reads.p99Ms)).toFixed(1)} ms`),
    noted("memory of the server", `${idle} MB idle, ${memoryOf(server)} MB after the load`),
  ];
}

/** The warrants that were opened last. */
async function newestIds({ url, secret }: Target): Promise<string[]> {
  const ids: string[] = [];
  for (let after = ""; ids.length < IDS; after = `&starting_after=${ids.at(-1)}`) {
    const response = await fetch(`${url}/v1/warrants?sort=created&limit=100${after}`, {
      headers: { Authorization: `Bearer ${secret}` },
    });
    const { data } = (await response.json()) as { readonly data: readonly { readonly id: string }[] };
    if (data.length === 0) break;
    ids.push(...data.map(({ id }) => id));
  }
  return ids;
}
