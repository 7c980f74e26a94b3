import { type RunningServer, startServer } from "../app.ts";
import type { Config } from "../config.ts";
import { isRefusal, type Refusal } from "../core/errors.ts";
import { createClient } from "./client.ts";
import { chooseFolder } from "./folder.ts";
import { createPaint, type Paint } from "./paint.ts";
import { SCENES } from "./scenes.ts";
import { openSeller, type Seller } from "./seller.ts";
import { type Cast, setStage } from "./stage.ts";
import { playStory } from "./story.ts";
import { tellAudit, tellMoney, tellPolicy, tellPromise, tellReceipts } from "./tell.ts";
import { tellWhatToTry } from "./try-it.ts";

export type DemoSettings = {
  readonly config: Config;
  /** Where the data goes; null means a new temporary folder. */
  readonly data: string | null;
  /** Whether server and seller go on after the story. */
  readonly keepServing: boolean;
  readonly colour: boolean;
  readonly print: (text: string) => void;
  /** Resolves when the demo shall stop serving. */
  readonly untilStopped: () => Promise<void>;
};

/** What the parts of the demo work with. */
export type Demo = {
  readonly server: RunningServer;
  /** Where the server is reached from this machine. */
  readonly url: string;
  readonly seller: Seller;
  readonly cast: Cast;
  readonly folder: string;
  readonly paint: Paint;
  readonly print: (text: string) => void;
};

/**
 * The guided tour: a server, a seller and a sandbox organisation, four warrants and what becomes of their money. Throws
 * where anything comes out other than told.
 */
export async function runDemo(settings: DemoSettings): Promise<Refusal | null> {
  const { print, keepServing } = settings;
  const folder = await chooseFolder(settings.data);
  if (isRefusal(folder)) return folder;
  const paint = createPaint(settings.colour);
  print(`${paint.bold("Holdfast, a guided tour")}   ${paint.sandbox("SANDBOX")} no real money moves\n`);
  print(paint.bold("Getting ready"));
  const server = await startOnFreePort(demoConfig(settings.config, folder));
  if (isRefusal(server)) return server;
  try {
    const seller = openSeller();
    try {
      const url = reachableUrl(server.url);
      const { port } = settings.config;
      const elsewhere = port === 0 || url.endsWith(`:${port}`) ? "" : `, since port ${port} is taken`;
      print(`  ${paint.pass} server   ${url}${elsewhere}`);
      print(`  ${paint.pass} data     ${folder}`);
      print(`  ${paint.pass} seller   ${seller.url}, with ${SCENES.length} forecasts: one is good`);
      const cast = await setStage(server.ctx, (line) => print(`  ${paint.pass} ${line}`));
      const demo: Demo = { server, url, seller, cast, folder, paint, print };
      await play(demo);
      if (keepServing) {
        await tellWhatToTry(demo);
        await settings.untilStopped();
      }
      print(`\n${keepServing ? "Stopped" : "Done"}. The data stays in ${folder}: delete it when you like.`);
      return null;
    } finally {
      await seller.close();
    }
  } finally {
    await server.stop();
  }
}

async function play(demo: Demo): Promise<void> {
  const client = createClient(demo.url);
  tellPolicy(demo);
  tellPromise(demo);
  const played = await playStory(demo, client);
  tellMoney(demo, played.ledger);
  await tellReceipts(demo, client, played.warrants);
  tellAudit(demo);
}

/** The demo's folder, links that work on this machine, and sources on it; the rest is the operator's configuration. */
const demoConfig = (config: Config, folder: string): Config => ({
  ...config,
  data: folder,
  baseUrl: null,
  docsUrl: null,
  allowNetworks: [...config.allowNetworks, "127.0.0.0/8"],
});

/** At the configured port, or at any other where that is taken. */
async function startOnFreePort(config: Config): Promise<RunningServer | Refusal> {
  try {
    return await startServer(config);
  } catch (error) {
    const isTaken = error instanceof Error && "code" in error && error.code === "EADDRINUSE";
    if (!isTaken) throw error;
    return startServer({ ...config, port: 0 });
  }
}

/** A server that listens at every address is reached at the loopback one. */
const reachableUrl = (url: string): string =>
  url.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:");
