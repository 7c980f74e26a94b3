import { describe, expect, test } from "bun:test";
import { connect } from "node:net";
import { join } from "node:path";
import { listen } from "../../src/app/listener.ts";
import { DEFAULTS } from "../../src/config.ts";

/** What takes seconds: connections that fall silent, and a process without descriptors. */

const TIMEOUT_MS = 60_000;
/** Ten seconds, and a step of Bun's timers. */
const IDLE_MS_MAX = 14_500;
const ANSWERED_AFTER_MS = 16_000;

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

  test("64 are left, from which a file is opened and a source is fetched, again and again", async () => {
    const { left, ...rest } = await without("reserve");
    expect(left).toBeGreaterThanOrEqual(64);
    expect(rest).toEqual({ opened: true, fetched: ["answered 200"] });
  });

  test("without a reserve the process lives, and a fetch has certainly not connected", async () => {
    const { left, ...rest } = await without("nothing");
    expect(left).toBeLessThan(64);
    expect(rest).toEqual({ opened: false, fetched: ["source_unreachable, connected: false"] });
  });
});
