import { tmpdir } from "node:os";
import { resolve } from "node:path";
import { openForCommands } from "../../src/app/ledger.ts";
import { readConfig } from "../../src/config.ts";
import type { Given } from "../../src/core/setting-values.ts";
import type { Context } from "../../src/services/context.ts";
import { cheapPasswords } from "./cheap-passwords.ts";
import { type Client, createClient } from "./client.ts";
import { databaseSecrets, databaseSettings } from "./database-settings.ts";
import { openTestLedger, type TestLedger } from "./ledger.ts";
import { newLedgerFolder, removeLedgerFolder, takePlacesOfKilled } from "./new-ledger.ts";
import { must } from "./organisations.ts";
import { testSettings } from "./server.ts";

const MAIN = resolve(import.meta.dir, "../../src/main.ts");

/** `holdfast serve` as a process of its own, that a test may kill. */
export type ServerProcess = {
  readonly client: Client;
  readonly url: string;
  /** Sends the signal, to the process group where it has its own. Resolves with the exit code; null where the signal ended it. */
  end(signal: "SIGKILL" | "SIGTERM" | "SIGINT"): Promise<number | null>;
};

/** A data folder, servers on it one after the other, and the ledger as seen from outside. */
export type ServerFolder = {
  readonly folder: string;
  readonly ctx: Context & Pick<TestLedger, "reader">;
  /**
   * @param secrets settings that no flag gives, such as `WORKER_SECRET`
   * @param ownGroup whether the server and its children are a process group, as a terminal or a service manager makes it
   */
  start(fetchSeconds: string, secrets?: Given, ownGroup?: boolean): Promise<ServerProcess>;
  close(): Promise<void>;
};

export async function openServerFolder(): Promise<ServerFolder> {
  const folder = newLedgerFolder(tmpdir());
  const settings = testSettings(folder);
  const { ctx: real, close } = await openForCommands(must(readConfig(settings, {})), databaseSecrets(folder));
  const reading = openTestLedger(folder);
  const processes: Bun.Subprocess[] = [];
  return {
    folder,
    ctx: {
      ...real,
      reader: reading.reader,
      passwords: cheapPasswords(real.passwords),
    },
    async start(fetchSeconds, secrets = {}, ownGroup = false) {
      const environment = { ...settings, FETCH_SECONDS: fetchSeconds, ...secrets };
      const child = Bun.spawn([process.execPath, MAIN, "serve", "--json"], {
        cwd: folder,
        env: {
          ...databaseSettings(folder),
          ...Object.fromEntries(
            Object.entries(environment).map(([name, value]) => [`HOLDFAST_${name}`, value]),
          ),
        },
        stdout: "pipe",
        stderr: "inherit",
        detached: ownGroup,
      });
      processes.push(child);
      const { url } = JSON.parse(await firstLine(child.stdout));
      return {
        url,
        client: createClient(fetch, url, `http://localhost:${new URL(url).port}/docs`),
        async end(signal) {
          if (ownGroup) process.kill(-child.pid, signal);
          else child.kill(signal);
          await child.exited;
          if (child.signalCode !== null) takePlacesOfKilled(folder);
          return child.signalCode === null ? child.exitCode : null;
        },
      };
    },
    async close() {
      for (const child of processes) child.kill("SIGKILL");
      await Promise.all(processes.map(({ exited }) => exited));
      reading.close();
      await close();
      removeLedgerFolder(folder);
    },
  };
}

async function firstLine(stream: ReadableStream<Uint8Array>): Promise<string> {
  let text = "";
  const decoder = new TextDecoder();
  for await (const chunk of stream) {
    text += decoder.decode(chunk, { stream: true });
    if (text.includes("\n")) return text.slice(0, text.indexOf("\n"));
  }
  throw new Error(`the server ended before it listened: ${text}`);
}
