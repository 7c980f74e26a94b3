import { type RunningServer, startServer } from "../app.ts";
import type { Config } from "../config.ts";
import { isRefusal, type Refusal } from "../core/errors.ts";
import { createClient, PATHS } from "./client.ts";
import { chooseFolder } from "./folder.ts";
import { PURCHASE } from "./scenes.ts";
import { openSeller } from "./seller.ts";
import { type Demo, setStage } from "./stage.ts";
import { openAsAgent, playStory, type Story, type WarrantBody } from "./story.ts";

export type DemoSettings = {
  readonly config: Config;
  /** Where the data goes; null means a new temporary folder. */
  readonly data: string | null;
  /** Whether server and seller go on after the story. */
  readonly keepServing: boolean;
  readonly telling: Telling;
  /** Resolves when the demo must stop serving. */
  readonly untilStopped: () => Promise<void>;
};

/** How the tour is told: `inWords` for people, `inJson` for programs. Each function is called once, in this order. */
export type Telling = {
  /** Everything is set up, and no warrant is open yet. */
  ready(demo: Demo): void;
  /** @param yours one more warrant, held for whoever watches; null where nothing goes on serving */
  played(demo: Demo, story: Story, yours: WarrantBody | null): void;
  over(demo: Demo): void;
};

/** Held for whoever watches: 10.00 USDC. */
const YOURS = 10_000_000n;

/**
 * The guided tour: a server, a seller and a sandbox organisation, four warrants, a purchase by x402, and what happens to
 * their money. Throws where anything differs from what the tour says.
 */
export async function runDemo(settings: DemoSettings): Promise<Refusal | null> {
  const { telling, keepServing, config } = settings;
  const folder = await chooseFolder(settings.data);
  if (isRefusal(folder)) return folder;
  const server = await startOnFreePort(demoConfig(config, folder));
  if (isRefusal(server)) return server;
  try {
    const url = reachableUrl(server.url);
    const trusted = { issuer: server.ctx.baseUrl, jwksUrl: url + PATHS.keys };
    const seller = openSeller(trusted, PURCHASE.terms);
    try {
      const portTaken = config.port === 0 || url.endsWith(`:${config.port}`) ? null : config.port;
      const cast = await setStage(server.ctx);
      const demo: Demo = { server, url, portTaken, seller, cast, folder, keepServing };
      telling.ready(demo);
      const client = createClient(url);
      const story = await playStory(demo, client);
      const yours = keepServing ? await openAsAgent(demo, client, "yours", YOURS) : null;
      // Listen first: whoever reads the last line may ask for the stop at once.
      const stopped = keepServing ? settings.untilStopped() : null;
      telling.played(demo, story, yours);
      await stopped;
      telling.over(demo);
      return null;
    } finally {
      await seller.close();
    }
  } finally {
    await server.stop();
  }
}

/** The network of the demo's own seller. */
const SELLERS = "127.0.0.0/8";

/** The demo's folder, links that work on this machine, and sellers on it; the rest is the operator's configuration. */
const demoConfig = (config: Config, folder: string): Config => ({
  ...config,
  data: folder,
  baseUrl: null,
  docsUrl: null,
  allowNetworks: [...config.allowNetworks, SELLERS],
  x402AllowNetworks: [...config.x402AllowNetworks, SELLERS],
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

/** A server that listens at every address is reached at the loopback address. */
const reachableUrl = (url: string): string =>
  url.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:");
