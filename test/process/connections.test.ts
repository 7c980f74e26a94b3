import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdtempSync, readFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { listen } from "../../src/app/listener.ts";
import { DEFAULTS } from "../../src/config.ts";
import { createProgram, type Json, SOURCE } from "../crash/program.ts";
import { databaseSettings } from "../support/database-settings.ts";
import { removeLedgerFolder } from "../support/new-ledger.ts";
import { until } from "../support/until.ts";

/** What takes seconds: connections that fall silent, and a server or a process that has few connections or descriptors. */

const TIMEOUT_MS = 60_000;
/** Ten seconds, and a step of Bun's timers. */
const IDLE_MS_MAX = 14_500;
const ANSWERED_AFTER_MS = 16_000;
/** The server looks at its connections at least once a second. */
const SEVERAL_LOOKS_MS = 2_500;

describe("a connection", () => {
  test.concurrent.each([
    ["on which nothing is asked is closed after 10 s", ""],
    ["between requests is closed after 10 s", "GET / HTTP/1.1\r\nHost: a\r\n\r\n"],
    ["whose head does not end is closed after 10 s", "GET / HTTP/1.1\r\nX: "],
  ])(
    "%s",
    async (_, sent) => {
      const { answers, openMs } = await talk(sent, () => Promise.resolve());
      expect(openMs).toBeLessThan(IDLE_MS_MAX);
      expect(openMs).toBeGreaterThan(7_000);
      expect(answers).toBe(sent.endsWith("\r\n\r\n") ? 1 : 0);
    },
    TIMEOUT_MS,
  );

  test.concurrent(
    "stays while a request on it is answered, and is idle again after that",
    async () => {
      const { answers, openMs } = await talk("GET / HTTP/1.1\r\nHost: a\r\n\r\n", () =>
        // The time that this waits is what is tested.
        Bun.sleep(ANSWERED_AFTER_MS),
      );
      expect(answers).toBe(1);
      expect(openMs).toBeLessThan(ANSWERED_AFTER_MS + IDLE_MS_MAX);
    },
    TIMEOUT_MS,
  );
});

/** Sends this, and answers how many answers came and when the server closed. */
async function talk(sent: string, work: () => Promise<void>): Promise<{ answers: number; openMs: number }> {
  const { listener, ready, close } = listen({ ...DEFAULTS, port: 0 });
  ready(async () => {
    await work();
    return new Response("done");
  });
  const closed = Promise.withResolvers<void>();
  let received = "";
  const startedAt = performance.now();
  const socket = connect(listener.port ?? 0, "127.0.0.1", () => socket.write(sent));
  socket.on("data", (data: Buffer) => {
    received += data.toString();
  });
  socket.on("error", () => {});
  socket.on("close", () => closed.resolve());
  await closed.promise;
  await close();
  return { answers: received.split("200 OK").length - 1, openMs: performance.now() - startedAt };
}

describe("where strangers hold every descriptor that they can get", () => {
  const LIMIT = 300;
  async function without(kept: string) {
    using source = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => new Response("hello") });
    const file = join(import.meta.dir, "../support/few-descriptors.ts");
    const program = [process.execPath, file, kept, String(source.url)];
    const child = Bun.spawn(["sh", "-c", `ulimit -n ${LIMIT} && exec "$0" "$@"`, ...program], {
      stdout: "pipe",
      stderr: "pipe",
    });
    const [out, err] = await Promise.all([
      new Response(child.stdout).text(),
      new Response(child.stderr).text(),
    ]);
    expect([await child.exited, err]).toEqual([0, ""]);
    return JSON.parse(out);
  }

  test("64 are left, from which a file is opened, a source is fetched, again and again, and a webhook is sent", async () => {
    const { left, ...rest } = await without("reserve");
    expect(left).toBeGreaterThanOrEqual(64);
    expect(rest).toEqual({ opened: true, fetched: ["answered 200"], attempted: 200 });
  });

  test("without a reserve the process lives, a fetch has certainly not connected, and an attempt of a webhook failed", async () => {
    const { left, ...rest } = await without("nothing");
    expect(left).toBeLessThan(64);
    expect(rest).toEqual({
      ...{ opened: false, fetched: ["source_unreachable, connected: false"] },
      attempted: "source_unreachable",
    });
  });
});

// Elsewhere connections are not counted.
describe.skipIf(process.platform !== "linux")("a server", () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "holdfast-connections-"));
  });
  afterEach(() => removeLedgerFolder(folder));

  /** Runs `use` while the server runs, and gives what it logged. */
  async function whileServing(
    settings: Readonly<Record<string, string>>,
    use: (server: { readonly url: URL; readonly pids: readonly number[] }) => Promise<void>,
    executable = SOURCE,
  ): Promise<readonly Json[]> {
    const program = createProgram(executable, folder, { ...databaseSettings(folder), ...settings });
    try {
      const server = await program.serve();
      await use({ url: new URL(server.url), pids: program.processes() });
      await server.stop();
    } finally {
      await program.killAll();
    }
    const log = readFileSync(join(folder, "server.log"), "utf8");
    return log
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
  }

  const CLOSED = { message: "closed connections over the limit" };
  const HOLDER = "127.0.0.2";
  const SIXTEEN = { HOLDFAST_CONNECTIONS: "16" };
  /** Opens so many connections from one address, and keeps them. */
  async function hold(url: URL, address: string, wanted: number): Promise<readonly Socket[]> {
    const sockets: Socket[] = [];
    for (let count = 0; count < wanted; count++) {
      const { promise, resolve } = Promise.withResolvers<void>();
      const socket = connect({ port: Number(url.port), host: "127.0.0.1", localAddress: address }, resolve);
      socket.on("error", () => {});
      // What is not read never ends.
      socket.resume();
      sockets.push(socket);
      await promise;
    }
    return sockets;
  }
  /** That nothing is closed is seen after a time alone. */
  const afterLooks = () => Bun.sleep(SEVERAL_LOOKS_MS);
  const openOf = (sockets: readonly Socket[]): readonly number[] =>
    sockets.flatMap(({ readyState }, index) => (readyState === "open" ? [index] : []));

  test(
    "keeps an eighth of its connections for one address, the oldest, and serves others",
    async () => {
      const log = await whileServing(SIXTEEN, async ({ url }) => {
        const oldest = await hold(url, HOLDER, 2);
        // Connections that came between two looks are of one age.
        await afterLooks();
        const sockets = [...oldest, ...(await hold(url, HOLDER, 4))];
        await until("four are closed", () => openOf(sockets).length <= 2);
        expect((await fetch(new URL("/healthz", url))).status).toBe(200);
        await afterLooks();
        expect(openOf(sockets)).toEqual([0, 1]);
        for (const socket of sockets) socket.destroy();
      });
      expect(log).toContainEqual(expect.objectContaining({ ...CLOSED, level: "warning", addresses: 1 }));
    },
    TIMEOUT_MS,
  );

  test(
    "keeps no more than its connections for all addresses together",
    async () => {
      const log = await whileServing(SIXTEEN, async ({ url }) => {
        const addresses = Array.from({ length: 10 }, (_, index) => `127.0.0.${2 + index}`);
        const sockets = (await Promise.all(addresses.map((address) => hold(url, address, 2)))).flat();
        await until("four are closed", () => openOf(sockets).length <= 16);
        await afterLooks();
        expect(openOf(sockets)).toHaveLength(16);
        for (const socket of sockets) socket.destroy();
      });
      expect(log).toContainEqual(expect.objectContaining({ ...CLOSED, level: "warning" }));
    },
    TIMEOUT_MS,
  );

  test(
    "lets a proxy that it trusts have more",
    async () => {
      const log = await whileServing({ ...SIXTEEN, HOLDFAST_TRUST_PROXY: HOLDER }, async ({ url }) => {
        const sockets = await hold(url, HOLDER, 6);
        await afterLooks();
        expect(openOf(sockets)).toHaveLength(6);
        for (const socket of sockets) socket.destroy();
      });
      expect(log).not.toContainEqual(expect.objectContaining(CLOSED));
    },
    TIMEOUT_MS,
  );

  test(
    "raises its limit of descriptors as far as it may, and warns where that is little",
    async () => {
      const limited = ["sh", "-c", 'ulimit -Sn 300 && ulimit -Hn 600 && exec "$0" "$@"', ...SOURCE];
      const log = await whileServing(
        {},
        async ({ pids }) => {
          const limitOf = (pid: number) =>
            /^Max open files\s+(\d+)\s+(\d+)/m
              .exec(readFileSync(`/proc/${pid}/limits`, "utf8"))
              ?.slice(1)
              .join();
          // The last 64 are its reserve, which it takes for a moment when a child starts.
          await until("the limit is 536 of 600", () => pids.some((pid) => limitOf(pid) === "536,600"));
        },
        limited,
      );
      expect(log).toContainEqual(
        expect.objectContaining({
          ...{ level: "warning", message: "few file descriptors: raise `ulimit -n`" },
          ...{ descriptors: 600, connections: 600 - 64 - 75 },
        }),
      );
    },
    TIMEOUT_MS,
  );
});
