import { readFileSync } from "node:fs";
import { join } from "node:path";
import { memoryOf, prepareLedger, type RunningServer, startServer } from "../bench/holdfast.ts";
import { DELIVERABLE } from "../bench/opening.ts";
import { inWords } from "../bench/scale.ts";
import { atMost, noted, type Row, under } from "../bench/table.ts";
import { FLOOD_NAMES, type FloodSource, floodSource } from "../support/floods.ts";
import { verified } from "./honest.ts";

/** What one fetch may cost, whatever its source sends. On one machine both sides share the processor, and nothing is faster. */
const CPU_SECONDS_MAX = 2;
const GROWN_MB_MAX = 64;
/** So many floods at once run beside an honest check. */
const FLOODS_AT_ONCE = 8;
const HONEST_SECONDS_MAX = 5;
const LIMIT_MS = 60_000;
const MB = 1_048_576;
/** `/proc/<pid>/stat` counts in these. */
const TICKS_A_SECOND = 100;

/** Sources whose answers never end, and in which no byte is content. */
export async function measureFraming(folder: string): Promise<Row[]> {
  const data = join(folder, "data");
  const secret = prepareLedger(data);
  await using server = await startServer(data);
  using honest = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response(DELIVERABLE) });
  const floods = await floodSource();
  const check = (source: string) => verified(server.url, secret, source, LIMIT_MS);
  try {
    // The first check starts the children.
    await check(String(honest.url));
    const rows: Row[] = [];
    for (const flood of FLOOD_NAMES)
      rows.push(
        ...under(
          `a source that sends ${flood}`,
          await oneFetch(server, floods, () => check(floods.url(flood))),
        ),
      );
    return [...rows, ...(await besideFloods(floods, check, String(honest.url)))];
  } finally {
    floods.close();
  }
}

async function oneFetch(
  server: RunningServer,
  floods: FloodSource,
  check: () => Promise<string>,
): Promise<Row[]> {
  const before = { cpu: cpuSecondsOf(server), sent: floods.sentBytes(), memory: memoryOf(server) };
  let memory = before.memory;
  const watching = setInterval(() => {
    memory = Math.max(memory, memoryOf(server));
  }, 50);
  const startedAt = performance.now();
  const outcome = await check();
  const seconds = (performance.now() - startedAt) / 1_000;
  clearInterval(watching);
  return [
    noted(
      "its check is",
      `${outcome} after ${seconds.toFixed(1)} s, ${inWords(Math.round((floods.sentBytes() - before.sent) / MB))} MB sent`,
    ),
    atMost("processor", cpuSecondsOf(server) - before.cpu, { required: CPU_SECONDS_MAX }, " s"),
    atMost("memory grows by", memory - before.memory, { required: GROWN_MB_MAX }, " MB"),
  ];
}

async function besideFloods(
  floods: FloodSource,
  check: (source: string) => Promise<string>,
  honest: string,
): Promise<Row[]> {
  const [flood = "trailers"] = FLOOD_NAMES;
  const flooded = Promise.all(Array.from({ length: FLOODS_AT_ONCE }, () => check(floods.url(flood))));
  const startedAt = performance.now();
  const outcome = await check(honest);
  const seconds = (performance.now() - startedAt) / 1_000;
  await flooded;
  return [
    atMost(
      `an honest check beside ${FLOODS_AT_ONCE} floods takes`,
      seconds,
      { required: HONEST_SECONDS_MAX },
      " s",
      outcome,
    ),
  ];
}

/** The processor time that a process has used. */
function cpuSecondsOf({ pid }: RunningServer): number {
  // The name, in brackets, may have spaces in it.
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8")
    .replace(/^.*\) /s, "")
    .split(" ");
  return (Number(fields[11]) + Number(fields[12])) / TICKS_A_SECOND;
}
