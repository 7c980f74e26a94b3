import { workerData } from "node:worker_threads";
import { SQL } from "bun";
import type { Answer, Answered, Asked, ThreadData } from "./sync-sql.ts";

/** The whole program of the thread that asks for tests that cannot wait: see `sync-sql.ts`. */
const { port, signal } = workerData as ThreadData;
const clients = new Map<string, SQL>();

port.on("message", async (asked: Asked) => {
  if (asked.form === "beside") return runBeside(asked);
  port.postMessage({ ...(await answer(asked)), number: asked.number } satisfies Answered);
  Atomics.add(signal, 0, 1);
  Atomics.notify(signal, 0);
});

/** What is under way, one after the other. */
let beside = Promise.resolve();

function runBeside({ url, text }: Asked): void {
  beside = beside.then(async () => {
    const client = new SQL(url, { max: 1 });
    // Where it fails, something is left that ends with the server.
    await client
      .unsafe(text ?? "")
      .simple()
      .catch(() => {});
    await client.close();
  });
}

async function answer({ url, text, params, form }: Asked): Promise<Answer> {
  try {
    if (text === null) {
      const client = clients.get(url);
      clients.delete(url);
      await client?.close({ timeout: 0 });
      return { rows: [], count: 0 };
    }
    const client = clients.get(url) ?? new SQL(url, { max: 1, bigint: true });
    clients.set(url, client);
    if (form === "script") {
      await client.unsafe(text).simple();
      return { rows: [], count: 0 };
    }
    const query = client.unsafe(text, [...params]);
    const rows = await (form === "values" ? query.values() : query).execute();
    return { rows: [...rows], count: rows.count };
  } catch (error) {
    return { failed: (error as Error).message };
  }
}
