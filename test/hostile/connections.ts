import { readdirSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { SPARE_DESCRIPTORS } from "../../src/platform/descriptors.ts";
import { prepareLedger, type RunningServer, startServer } from "../bench/holdfast.ts";
import { DELIVERABLE } from "../bench/opening.ts";
import { inWords } from "../bench/scale.ts";
import { atLeast, atMost, noted, type Row, under } from "../bench/table.ts";
import { verified } from "./honest.ts";

/** How long the server keeps a connection on which nothing is asked. */
const IDLE_SECONDS = 10;
/** The timers of the server have steps of four seconds. */
const IDLE_STEP_SECONDS = 4;
/** How long an honest client may have to try. */
const SERVED_SECONDS = 15;
/** How long a stranger holds what it gets. */
const HELD_MS = 30_000;
const FEW_DESCRIPTORS = 600;
/** What the server itself opens out of the spare descriptors, for the honest client's checks. */
const OWN_MEANWHILE = 8;
/** The address that the stranger comes from. */
const HOLDER = "127.0.0.2";

export async function measureConnections(folder: string): Promise<Row[]> {
  const data = join(folder, "data");
  const secret = prepareLedger(data);
  const machine = Number(Bun.spawnSync(["sh", "-c", "ulimit -Hn"]).stdout.toString());
  return [
    ...(await whileIdle(data)),
    ...(await whileHeld(data, secret, {
      descriptors: FEW_DESCRIPTORS,
      holders: 1,
      wanted: 2 * FEW_DESCRIPTORS,
    })),
    // One process has no more descriptors than the server, so two of them hold.
    ...(await whileHeld(data, secret, { descriptors: machine, holders: 2, wanted: machine / 2 + 200 })),
  ];
}

async function whileIdle(data: string): Promise<Row[]> {
  await using server = await startServer(data);
  const port = portOf(server);
  const [silent, afterRequest] = await Promise.all([openFor(port, ""), openFor(port, GET)]);
  const limit = { required: IDLE_SECONDS + IDLE_STEP_SECONDS };
  return [
    atMost("a connection that asks nothing is closed after", silent, limit, " s"),
    atMost("a connection between requests is closed after", afterRequest, limit, " s"),
  ];
}

const portOf = ({ url }: RunningServer): number => Number(new URL(url).port);

const GET = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";
const GIVE_UP_SECONDS = 30;

/** For how many seconds the server keeps a connection on which this is sent, and then nothing; infinity where it keeps it. */
function openFor(port: number, sent: string): Promise<number> {
  const { promise, resolve } = Promise.withResolvers<number>();
  const startedAt = performance.now();
  const socket = connect(port, "127.0.0.1", () => socket.write(sent));
  const giveUp = setTimeout(() => resolve(Number.POSITIVE_INFINITY), GIVE_UP_SECONDS * 1_000);
  socket.on("data", () => {});
  socket.on("error", () => {});
  socket.on("close", () => {
    clearTimeout(giveUp);
    resolve((performance.now() - startedAt) / 1_000);
  });
  return promise.finally(() => socket.destroy());
}

type Hold = {
  readonly descriptors: number;
  readonly holders: number;
  /** How many connections each holder wants. */
  readonly wanted: number;
};

/** One address holds all the connections that it gets, and keeps trying; an honest client from another one works meanwhile. */
async function whileHeld(
  data: string,
  secret: string,
  { descriptors, holders, wanted }: Hold,
): Promise<Row[]> {
  await using server = await startServer(data, { descriptors });
  using source = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response(DELIVERABLE) });
  const strangers = Array.from({ length: holders }, () => startHolder(portOf(server), wanted));
  const servedSeconds: number[] = [];
  const states = new Map<string, number>();
  const open: number[] = [];
  const counting = setInterval(() => open.push(readdirSync(`/proc/${server.pid}/fd`).length), 50);
  for (const until = performance.now() + HELD_MS; performance.now() < until; ) {
    const startedAt = performance.now();
    const state = await untilAnswered(() => verified(server.url, secret, String(source.url), TRY_MS));
    servedSeconds.push((performance.now() - startedAt) / 1_000);
    states.set(state, (states.get(state) ?? 0) + 1);
  }
  clearInterval(counting);
  const held = strangers.reduce((sum, stranger) => sum + stranger.held(), 0);
  for (const stranger of strangers) stranger.stop();
  if (server.exitCode() !== null) throw new Error(`the server ended: ${server.log()}`);
  const reach = descriptors - SPARE_DESCRIPTORS;
  open.sort((one, other) => one - other);
  const heading = `${inWords(descriptors)} descriptors, one address that wants ${inWords(wanted * holders)} connections`;
  return under(heading, [
    atMost(
      "an honest client is served after, at worst",
      Math.max(...servedSeconds),
      { required: SERVED_SECONDS },
      " s",
    ),
    atLeast(
      "its warrants, opened and released",
      states.get("released") ?? 0,
      { required: 1 },
      others(states),
    ),
    atMost("descriptors open, at most", open.at(-1) ?? 0, { required: reach + OWN_MEANWHILE }, ""),
    noted("descriptors open, half of the time below", inWords(open[open.length >> 1] ?? 0)),
    noted("connections that the stranger has in the end", inWords(held)),
  ]);
}

const others = (states: ReadonlyMap<string, number>): string =>
  [...states]
    .filter(([state]) => state !== "released")
    .map(([state, times]) => `${times} ${state}`)
    .join(", ") || "no other outcome";

const TRY_MS = 2_000;
const AGAIN_MS = 100;

/** Tries until there is an answer, as an honest client does. */
async function untilAnswered(attempt: () => Promise<string>): Promise<string> {
  for (;;) {
    try {
      return await attempt();
    } catch {
      await Bun.sleep(AGAIN_MS);
    }
  }
}

function startHolder(port: number, wanted: number) {
  const holder = [process.execPath, join(import.meta.dir, "holder.ts"), String(port), HOLDER, String(wanted)];
  const child = Bun.spawn(holder, { stdout: "pipe", stderr: "inherit" });
  let held = 0;
  const reading = async (): Promise<void> => {
    for await (const chunk of child.stdout)
      held = Number(String(Buffer.from(chunk)).trim().split("\n").at(-1));
  };
  void reading();
  return { held: () => held, stop: () => child.kill() };
}
