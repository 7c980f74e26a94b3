import { join } from "node:path";
import { type RunningServer, startServer } from "../app.ts";
import type { Config } from "../config.ts";
import { isRefusal, type Refusal } from "../core/errors.ts";
import { type StartProgress, withProgress } from "../core/progress.ts";
import { offerSignIn } from "../services/auth/sign-in-link.ts";
import { createClient, PATHS } from "./client.ts";
import { chooseFolder, LOG } from "./folder.ts";
import { PURCHASE } from "./scenes.ts";
import { openSeller } from "./seller.ts";
import { type Demo, setStage } from "./stage.ts";
import { openAsAgent, playStory, type Story, type WarrantBody } from "./story.ts";

export type DemoSettings = {
  readonly config: Config;
  /** Where the data goes; null means a new temporary folder. */
  readonly data: string | null;
  /** Whether the server and the seller go on after the story. */
  readonly keepServing: boolean;
  readonly narrator: Narrator;
  readonly startProgress: StartProgress;
  /** Sends the server's log lines to a file: between the lines of the tour they would disturb its reader. */
  readonly logTo: (file: string) => void;
  /** Resolves when the demo is to stop serving. */
  readonly untilStopped: () => Promise<void>;
};

/** Prints the tour: `inWords` for people, `inJson` for programs. */
export type Narrator = {
  /** Everything is set up, and nothing has happened yet. */
  ready(demo: Demo): void;
  /**
   * The story is over.
   *
   * @param yours what is left for the reader to try; null where the server stops now
   */
  played(demo: Demo, story: Story, yours: Yours | null): void;
  /** The server stops. */
  over(demo: Demo): void;
};

export type Yours = {
  /** One more warrant, held for the reader. */
  readonly warrant: WarrantBody;
  /** Signs in to the console, once. */
  readonly signInUrl: string;
};

/** The amount of the reader's own warrant: 10.00 USDC. */
const YOURS = 10_000_000n;

/**
 * The guided tour: a server, a seller and a sandbox organisation, four warrants, a purchase by x402, and what happens to their
 * money. Throws where a step does not have the planned outcome.
 */
export async function runDemo(settings: DemoSettings): Promise<Refusal | null> {
  const { narrator, keepServing, config, startProgress } = settings;
  const folder = await chooseFolder(settings.data);
  if (isRefusal(folder)) return folder;
  settings.logTo(join(folder, LOG));
  const server = await withProgress(startProgress("starting the demo's server"), () =>
    startOnFreePort(demoConfig(config, folder)),
  );
  if (isRefusal(server)) return server;
  try {
    const url = reachableUrl(server.url);
    const trusted = { issuer: server.ctx.baseUrl, jwksUrl: url + PATHS.keys };
    const seller = openSeller(trusted, PURCHASE.terms);
    try {
      const portTaken = config.port === 0 || url.endsWith(`:${config.port}`) ? null : config.port;
      const cast = await setStage(server.ctx);
      const demo: Demo = { server, url, portTaken, seller, cast, folder, keepServing };
      narrator.ready(demo);
      const client = createClient(url);
      const story = await withProgress(startProgress("playing the story"), ({ update }) =>
        playStory(demo, client, update),
      );
      const yours = keepServing
        ? {
            warrant: await openAsAgent(demo, client, "yours", YOURS),
            signInUrl: offerSignIn(server.ctx, cast.owner.id),
          }
        : null;
      // It must come before the last line is printed: a reader of that line may stop the demo at once.
      const stopped = keepServing ? settings.untilStopped() : null;
      narrator.played(demo, story, yours);
      await stopped;
      narrator.over(demo);
      return null;
    } finally {
      await seller.close();
    }
  } finally {
    await server.stop();
  }
}

/** The networks that the demo's own seller is on. */
const SELLERS = "127.0.0.0/8";

/** The operator's configuration, but with the demo's folder, links to this machine, and sellers on this machine allowed. */
const demoConfig = (config: Config, folder: string): Config => ({
  ...config,
  data: folder,
  baseUrl: null,
  docsUrl: null,
  allowNetworks: [...config.allowNetworks, SELLERS],
  x402AllowNetworks: [...config.x402AllowNetworks, SELLERS],
});

/** Starts the server at the configured port, or at another one where that is taken. */
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
