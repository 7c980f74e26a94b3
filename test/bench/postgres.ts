import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type Postgres, startPostgres } from "../support/postgres-server.ts";
import { postgresSettings } from "../support/postgres-settings.ts";
import { prepareLedger, type RunningServer, startServer } from "./holdfast.ts";
import { loadBeside, type Target } from "./load.ts";
import { CONNECTIONS, inWords, type Scale, say } from "./scale.ts";
import { median } from "./statistics.ts";
import { atLeast, noted, type Row } from "./table.ts";

/** All instances must have the same. */
const HOLDFAST_BASE_URL = "http://localhost:8080";
const WARM_SECONDS = 5;
const ROUND_SECONDS = 4;

/** Opens in a second, and what one took of the processor: in the instances, or the program, and in PostgreSQL; microseconds. */
type Figures = { readonly rate: number; readonly processor: number; readonly server: number };

/**
 * Opens on one hot balance, by instances of the executable and by a program that was written by hand, on one server of PostgreSQL. They take
 * turns in short rounds, and the ratios of the rounds are compared.
 */
export async function measurePostgres({ folder, rounds }: Scale): Promise<Row[]> {
  const postgres = await startPostgres();
  try {
    const ledger = { ...postgresSettings(await postgres.createDatabase()), HOLDFAST_BASE_URL };
    const byHand = await postgres.createDatabase();
    const data = join(folder, "on-postgres");
    const secret = prepareLedger(data, ledger);
    prepareLedger(data, postgresSettings(byHand));
    await using first = await startServer(data, { settings: ledger });
    await using second = await startServer(data, { settings: ledger });
    const measure = (servers: readonly RunningServer[], seconds: number) =>
      opensOf(postgres, servers, secret, folder, seconds);
    say("PostgreSQL: warming up");
    await measure([first, second], WARM_SECONDS);
    const figures: Record<"hand" | "one" | "two", Figures>[] = [];
    for (let round = 0; round < rounds; round++) {
      say(`PostgreSQL: round ${round + 1} of ${rounds}`);
      figures.push({
        hand: await handWritten(postgres, byHand),
        one: await measure([first], ROUND_SECONDS),
        two: await measure([first, second], ROUND_SECONDS),
      });
    }
    return rowsOf(figures);
  } finally {
    await postgres.close();
  }
}

function rowsOf(figures: readonly Record<"hand" | "one" | "two", Figures>[]): Row[] {
  const of = (name: "hand" | "one" | "two", figure: keyof Figures) =>
    median(figures.map((round) => round[name][figure]));
  const shown = (name: "hand" | "one" | "two") =>
    `${inWords(Math.round(of(name, "rate")))}/s; of one: ${Math.round(of(name, "processor"))} µs + ${Math.round(of(name, "server"))} µs of PostgreSQL`;
  return [
    noted(`PostgreSQL: opens written by hand, ${CONNECTIONS} connections`, shown("hand")),
    noted(`PostgreSQL: opens of one instance, ${CONNECTIONS} connections`, shown("one")),
    noted("PostgreSQL: opens of two instances on the same cores", shown("two")),
    atLeast("PostgreSQL: one instance, beside the opens written by hand", ratio(figures, "one", "hand"), {
      required: 4,
    }),
    atLeast("PostgreSQL: two instances, beside one", ratio(figures, "two", "one"), { required: 0.8 }),
  ];
}

const ratio = (
  figures: readonly Record<"hand" | "one" | "two", Figures>[],
  over: "one" | "two",
  under: "hand" | "one",
): number => median(figures.map((round) => round[over].rate / round[under].rate));

/** The load is divided among the instances. */
async function opensOf(
  postgres: Postgres,
  servers: readonly RunningServer[],
  secret: string,
  folder: string,
  seconds: number,
): Promise<Figures> {
  const connections = CONNECTIONS / servers.length;
  const before = {
    instances: processorOf(servers.map(({ pid }) => pid)),
    server: postgresProcessor(postgres),
  };
  const loaded = await Promise.all(
    servers.map(({ url }) => {
      const target: Target = { url, secret };
      return loadBeside({ target, kind: "open", seconds, folder, connections });
    }),
  );
  const rate = loaded.reduce((sum, one) => sum + one.rate, 0);
  const opened = rate * seconds;
  return {
    rate,
    processor: (processorOf(servers.map(({ pid }) => pid)) - before.instances) / opened,
    server: (postgresProcessor(postgres) - before.server) / opened,
  };
}

async function handWritten(postgres: Postgres, url: string): Promise<Figures> {
  const before = postgresProcessor(postgres);
  const program = [process.execPath, join(import.meta.dir, "by-hand.ts"), url];
  const child = Bun.spawn([...program, `${CONNECTIONS}`, `${ROUND_SECONDS}`], {
    stdout: "pipe",
    stderr: "inherit",
  });
  const { rate, processor } = JSON.parse(await child.stdout.text()) as Omit<Figures, "server">;
  // Its connections have ended, and what they took is their parent's.
  return { rate, processor, server: (postgresProcessor(postgres) - before) / (rate * ROUND_SECONDS) };
}

const TICK_US = 10_000;

/** What these processes have taken of the processor so far, microseconds. */
const processorOf = (pids: readonly number[]): number =>
  pids.reduce((sum, pid) => {
    const [user = 0, system = 0] = statOf(pid).slice(11, 13);
    return sum + (user + system) * TICK_US;
  }, 0);

/** The same of PostgreSQL: of its first process, of those that it has, and of those that have ended. */
function postgresProcessor({ pid }: Postgres): number {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").split(" ").filter(Boolean);
  const [endedUser = 0, endedSystem = 0] = statOf(pid).slice(13, 15);
  return processorOf([pid, ...children.map(Number)]) + (endedUser + endedSystem) * TICK_US;
}

/** The numbers after the state of a process; none of one that has just ended, whose time its parent has then. */
function statOf(pid: number): readonly number[] {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "utf8");
    return text
      .slice(text.lastIndexOf(")") + 2)
      .split(" ")
      .map(Number);
  } catch {
    return [];
  }
}
