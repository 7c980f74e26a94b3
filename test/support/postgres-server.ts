import { chownSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SQL } from "bun";
import { LOCALHOST_CERTIFICATE, LOCALHOST_PRIVATE_KEY } from "./tls.ts";
import { until } from "./until.ts";

const USER = "holdfast";
/** A test's alone, on loopback: nobody else reads it. */
const PASSWORD = "only-for-tests";
const START_MS_MAX = 60_000;
/** On a machine that has much else to do. */
const CONNECT_S_MAX = 20;

/** A PostgreSQL of its own, on loopback and in a temporary folder, that a test may kill. */
export type Postgres = {
  readonly port: number;
  /** The process of the server that runs now; its children serve the connections. */
  readonly pid: number;
  /** The address of a database, that of the server's own by default. */
  url(database?: string): string;
  /** Makes an empty database and answers its address. */
  createDatabase(): Promise<string>;
  /** Runs statements without parameters on the server's own database, and answers the rows of the last. */
  run(text: string): Promise<readonly Record<string, unknown>[]>;
  /** What it has logged. */
  log(): Promise<string>;
  /** SIGKILL for the server and every process of it, as if the machine had lost its power. What was fsynced is still there. */
  kill(): Promise<void>;
  /** Starts it again after `kill`, on the same port and files. */
  start(): Promise<void>;
  /** Makes a second server that copies this one, a moment later. */
  addReplica(): Promise<Postgres>;
  /**
   * Makes a second server that copies this one, and without which this one commits nothing from now on: what it has answered, the
   * second has on disk.
   */
  addSynchronousReplica(): Promise<Postgres>;
  /** Resolves when its synchronous replica follows it: after `start` it does so a few seconds later, and till then nothing is committed. */
  replicated(): Promise<void>;
  /** Makes a replica a server that writes. */
  promote(): Promise<void>;
  /** Kills it and deletes its files. */
  close(): Promise<void>;
};

/** Where the programs of the newest PostgreSQL that Debian installed are; null where none is here. `POSTGRES_BIN` may name others. */
function postgresPrograms(): string | null {
  const { POSTGRES_BIN } = process.env;
  if (POSTGRES_BIN) return POSTGRES_BIN;
  try {
    const [newest] = readdirSync("/usr/lib/postgresql").sort((one, other) => Number(other) - Number(one));
    return newest === undefined ? null : join("/usr/lib/postgresql", newest, "bin");
  } catch {
    return null;
  }
}

/**
 * Initialises and starts a server.
 *
 * @param root the folder that its files are in
 */
export const startPostgres = async (root = tmpdir()): Promise<Postgres> => run(await newServer(root));

/** The files of a server that was initialised and never started. */
export async function newServer(root = tmpdir()): Promise<Cluster> {
  const cluster = newCluster(await freePort(), root);
  writeFileSync(join(cluster.folder, "password"), PASSWORD);
  // The order of text is not that of its bytes in it, as in most operators' databases: a column that forgets to say so is seen.
  cluster.command(
    ...["initdb", "--pgdata", cluster.data, "--username", USER, "--auth", "scram-sha-256"],
    ...["--pwfile", join(cluster.folder, "password"), "--no-sync", "--encoding", "UTF8"],
    ...["--locale", "C.UTF-8", "--locale-provider", "icu", "--icu-locale", "en-US"],
  );
  cluster.own("server.crt", LOCALHOST_CERTIFICATE);
  cluster.own("server.key", LOCALHOST_PRIVATE_KEY);
  return cluster;
}

export type Cluster = ReturnType<typeof newCluster>;

/** The files of a server that is not there yet. Where root runs the tests they belong to another user: PostgreSQL refuses root. */
function newCluster(port: number, root: string) {
  const programs = postgresPrograms();
  if (programs === null)
    throw new Error(
      "no PostgreSQL is here: apt-get install postgresql, or name its programs in POSTGRES_BIN",
    );
  const folder = mkdtempSync(join(root, "holdfast-postgres-"));
  removeAtEnd(folder);
  const data = join(folder, "data");
  const identity = process.getuid?.() === 0 ? otherUser() : null;
  mkdirSync(data, { mode: 0o700 });
  const give = (path: string) => identity && chownSync(path, identity.uid, identity.gid);
  for (const path of [folder, data]) give(path);

  return {
    port,
    folder,
    data,
    /** Writes a file of the server's, which only its user may read. */
    own(name: string, text: string): void {
      writeFileSync(join(data, name), text, { mode: 0o600 });
      give(join(data, name));
    },
    /** Runs one of PostgreSQL's programs to its end. */
    command(program: string, ...args: readonly string[]): void {
      const env = { PGPASSWORD: PASSWORD, PATH: process.env.PATH };
      const done = Bun.spawnSync([join(programs, program), ...args], { ...identity, env, cwd: folder });
      if (!done.success) throw new Error(`${program} failed: ${done.stderr}`);
    },
    /** Runs a script of a shell in its folder, as an operator who logged in as the server's user. Answers what it prints. */
    async shell(script: string, variables: Readonly<Record<string, string>>): Promise<string> {
      const env = {
        PGDATA: data,
        ...variables,
        PGPASSWORD: PASSWORD,
        PATH: `${programs}:${process.env.PATH}`,
      };
      const shell = Bun.spawn(["sh", "-e", "-c", script], {
        ...{ ...identity, env, cwd: folder, stdin: "ignore", stdout: "pipe", stderr: "pipe" },
      });
      const [out, err, code] = await Promise.all([shell.stdout.text(), shell.stderr.text(), shell.exited]);
      if (code !== 0) throw new Error(`${script} failed: ${out}${err}`);
      return out;
    },
    url: (database = "postgres") =>
      `postgres://${USER}:${PASSWORD}@127.0.0.1:${port}/${database}?sslmode=disable`,
    /** Starts the server. It ends with this process, whatever ends that. */
    spawn(log: Bun.BunFile): Bun.Subprocess {
      const options = {
        port,
        listen_addresses: "127.0.0.1",
        unix_socket_directories: "",
        max_connections: 200,
        ssl: "on",
        log_line_prefix: "%m ",
        // In the server's folder: of a server that was killed for good, other shared memory would stay until the machine ends.
        dynamic_shared_memory_type: "mmap",
      };
      const set = Object.entries(options).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
      return Bun.spawn(["setpriv", "--pdeathsig", "QUIT", join(programs, "postgres"), "-D", data, ...set], {
        ...identity,
        cwd: folder,
        stdout: log,
        stderr: log,
      });
    },
  };
}

/** Removes the files once this process has ended, whatever ended it: nothing of it runs then, so a shell waits for its end. */
function removeAtEnd(folder: string): void {
  const program = 'trap "" INT TERM HUP; cat; while ! rm -rf "$0" 2>/dev/null; do sleep 0.1; done';
  Bun.spawn(["sh", "-c", program, folder], {
    stdin: "pipe",
    stdout: "ignore",
    stderr: "ignore",
    detached: true,
  }).unref();
}

/** Debian's user of PostgreSQL, or else `nobody`. */
function otherUser(): { readonly uid: number; readonly gid: number } {
  const users = readFileSync("/etc/passwd", "utf8");
  const [, uid, gid] =
    /^postgres:[^:]*:(\d+):(\d+)/m.exec(users) ?? /^nobody:[^:]*:(\d+):(\d+)/m.exec(users) ?? [];
  if (uid === undefined) throw new Error("there is no user to run PostgreSQL as");
  return { uid: Number(uid), gid: Number(gid) };
}

/** A port that nobody listens on. The server gets it by its number, since clients must find it there again after a restart. */
export const freePort = (): Promise<number> =>
  new Promise((resolve) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const { port } = server.address() as { port: number };
      server.close(() => resolve(port));
    });
  });

/** Runs statements without parameters, and answers the rows of the last. */
async function statementsAt(
  url: string,
  text: string,
  connectionTimeout = CONNECT_S_MAX,
): Promise<readonly Record<string, unknown>[]> {
  const sql = new SQL(url, { max: 1, connectionTimeout });
  try {
    const results = (await sql.unsafe(text).simple()) as Record<string, unknown>[][];
    const last = results.at(-1);
    return Array.isArray(last) ? last : (results as unknown as Record<string, unknown>[]);
  } finally {
    await sql.close();
  }
}

/** A copy of the server at this address, which will follow it. */
async function copyOf(url: string): Promise<Cluster> {
  const copy = newCluster(await freePort(), tmpdir());
  copy.command(
    ...["pg_basebackup", "--pgdata", copy.data, "--write-recovery-conf", "--wal-method", "stream"],
    ...["--dbname", url, "--checkpoint", "fast", "--no-sync"],
  );
  return copy;
}

async function run(cluster: Cluster): Promise<Postgres> {
  const log = Bun.file(join(cluster.folder, "log"));
  let child = cluster.spawn(log);
  let databases = 0;
  const { url } = cluster;

  const runStatements = (text: string, connectS?: number) => statementsAt(url(), text, connectS);

  const accepting = () =>
    until(
      "PostgreSQL accepts connections",
      async () => {
        if (child.exitCode !== null) throw new Error(`PostgreSQL ended: ${await log.text()}`);
        return runStatements("SELECT 1", 1).catch(() => false as const);
      },
      START_MS_MAX,
    );

  const replicated = async (): Promise<void> => {
    await until("the replica is synchronous", async () => {
      const [found] = await runStatements("SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'");
      return found !== undefined;
    });
  };

  async function kill(): Promise<void> {
    // Stopped first, so that it starts no other process meanwhile.
    child.kill("SIGSTOP");
    const children = childrenOf(child.pid);
    for (const pid of children) end(pid);
    child.kill("SIGKILL");
    await child.exited;
    await until("PostgreSQL's processes are gone", () => children.every((pid) => !isRunning(pid)));
  }

  await accepting();
  async function addReplica(): Promise<Postgres> {
    return run(await copyOf(url()));
  }

  return {
    port: cluster.port,
    get pid() {
      return child.pid;
    },
    url,
    run: (text) => runStatements(text),
    log: () => log.text(),
    ...{ kill, replicated },
    async createDatabase() {
      databases += 1;
      await runStatements(`CREATE DATABASE test_${databases}`);
      return url(`test_${databases}`);
    },
    async start() {
      child = cluster.spawn(log);
      await accepting();
    },
    addReplica,
    async addSynchronousReplica() {
      const replica = await addReplica();
      // After the copy, so that the replica does not wait for one of its own once it is promoted.
      await runStatements("ALTER SYSTEM SET synchronous_standby_names = '*'");
      await runStatements("SELECT pg_reload_conf()");
      await replicated();
      return replica;
    },
    async promote() {
      // Not waited for in its own statement: what is replayed until then may cancel that.
      await runStatements("SELECT pg_promote(false)");
      await until("it takes writes", async () => {
        const [found] = await runStatements("SELECT 1 WHERE NOT pg_is_in_recovery()");
        return found !== undefined;
      });
    },
    async close() {
      if (child.exitCode === null && child.signalCode === null) await kill();
      rmSync(cluster.folder, { recursive: true, force: true });
    },
  };
}

const childrenOf = (pid: number): readonly number[] =>
  readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").split(" ").filter(Boolean).map(Number);

function end(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It has ended by itself.
  }
}

const isRunning = (pid: number): boolean => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};
