import type { Config } from "../config.ts";
import { SECOND_MS } from "../core/time.ts";
import type { Shell } from "../http/shell.ts";
import type { Context } from "../services/context.ts";

/** How long a stop waits for the requests and jobs that are running. */
export const DRAIN_MS = 10 * SECOND_MS;
const DRAIN_STEP_MS = 5;
/** How long a connection may be silent, and how long the head of a request may take. Bun measures it in steps of 4 s. */
const IDLE_SECONDS = 10;
/** While a request is answered its connection is given this time, again and again. The step is well below the idle time. */
const ANSWERING_SECONDS = 20;
const ANSWERING_STEP_MS = 4 * SECOND_MS;
/** No limit here, since Bun would answer a bare 413. The shell holds the real limits, and answers with the error envelope. */
const BODY_BYTES_MAX = Number.MAX_SAFE_INTEGER;

/** Listens at once, so that the port is known and taken. Requests wait for the shell, which comes after the recovery. */
export function listen(config: Config) {
  const ready = Promise.withResolvers<Shell>();
  /** The requests that are being answered, and whether their connection was given more time. */
  const running = new Map<Request, boolean>();
  let shell: Shell = async (request, socketAddress) => (await ready.promise)(request, socketAddress);
  const listener = Bun.serve({
    hostname: config.host,
    port: config.port,
    idleTimeout: IDLE_SECONDS,
    // Otherwise Bun prints to stderr that an answer broke off. The log has its own form.
    development: false,
    maxRequestBodySize: BODY_BYTES_MAX,
    async fetch(request, server) {
      running.set(request, false);
      try {
        return await shell(request, () => server.requestIP(request)?.address);
      } finally {
        // What was given holds for the connection, not for the request.
        if (running.get(request)) server.timeout(request, IDLE_SECONDS);
        running.delete(request);
      }
    },
  });
  const answering = setInterval(() => {
    for (const request of running.keys()) {
      listener.timeout(request, ANSWERING_SECONDS);
      running.set(request, true);
    }
  }, ANSWERING_STEP_MS);
  /**
   * Both counts are needed. Bun's lacks requests that are still worked on after their client has left; ours
   * lacks answers that are still being sent.
   */
  async function allAnswered(): Promise<void> {
    const deadline = Date.now() + DRAIN_MS;
    while ((running.size > 0 || listener.pendingRequests > 0) && Date.now() < deadline) {
      await Bun.sleep(DRAIN_STEP_MS);
    }
  }
  return {
    listener,
    /** Answers the requests that wait, and all that follow. */
    ready(recovered: Shell): void {
      shell = recovered;
      ready.resolve(recovered);
    },
    /** Accepts no new requests, and waits for the running ones. */
    async drain(deliverySlots: Context["deliverySlots"]): Promise<void> {
      const stopped = listener.stop();
      await settledWithin([allAnswered(), deliverySlots.close()], DRAIN_MS);
      await listener.stop(true);
      await stopped;
    },
    async close(): Promise<void> {
      clearInterval(answering);
      await listener.stop(true);
    },
  };
}

/** Resolves when all promises have settled, or when the time is up. */
export async function settledWithin(promises: Iterable<Promise<unknown>>, timeoutMs: number): Promise<void> {
  const late = Promise.withResolvers<void>();
  const timer = setTimeout(late.resolve, timeoutMs);
  await Promise.race([Promise.allSettled([...promises]), late.promise]);
  clearTimeout(timer);
}
