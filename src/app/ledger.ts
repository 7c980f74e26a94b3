import type { CommandLineTools, OpenLedger } from "../cli/tools.ts";
import { type Config, NO_SECRETS, readConfig, readSecrets, type Secrets } from "../config.ts";
import { isRefusal, type Refusal, refuseField } from "../core/errors.ts";
import { NO_PROGRESS, type Progress } from "../core/progress.ts";
import { NO_SIGN_IN_LOG } from "../platform/sign-in-log.ts";
import { serverHasRun } from "../services/instance.ts";
import { hasLedger } from "../store/sqlite/ledger-file.ts";
import { OlderServer } from "../store/sqlite/ledger-version.ts";
import { refuseHalfRestored } from "../store/sqlite/restore.ts";
import { lockForServer } from "../store/sqlite/server-lock.ts";
import type { SqliteStore } from "../store/sqlite/store.ts";
import { backUpFolder, restoreFolder } from "./backups.ts";
import { composeContext } from "./context.ts";
import { keysOfCommand, refuseUnopened } from "./keys.ts";
import { runJobByHand } from "./operation.ts";
import { settingRefusal } from "./setting-refusal.ts";
import { openStore } from "./store.ts";
import { baseUrlOf } from "./urls.ts";
import { witnessSeedOfCommand } from "./witnessing.ts";

/** The ledger without a server, for the command line. A server may be running on the same folder. */
export async function openForCommands(
  config: Config,
  secrets = NO_SECRETS,
  progress: Progress = NO_PROGRESS,
): Promise<OpenLedger> {
  await using opening = new AsyncDisposableStack();
  const store = openBesideServer(config.data, progress);
  opening.defer(store.close);
  const instance = await store.read((reader) => reader.instance.get());
  const keys = keysOfCommand(config, secrets, serverHasRun(instance));
  // Links that a command writes lead to the server of the same folder.
  const baseUrl = config.baseUrl ?? instance.baseUrl ?? baseUrlOf(config);
  // Nothing that a command fetches or sends may reach that server.
  const listeners = () => [{ address: config.host, port: config.port }];
  const alone = { sigstoreRoot: null, warmChildren: 0, listeners, metrics: null, signInLog: NO_SIGN_IN_LOG };
  // A command signs nobody in.
  const shared = null;
  const witnessSeed = witnessSeedOfCommand(config, secrets, serverHasRun(instance));
  const { ctx } = composeContext(
    { config, secrets, store, shared, keys, witnessSeed, baseUrl, ...alone },
    opening,
  );
  const opened = opening.move();
  return { ctx, close: () => opened.disposeAsync() };
}

/** @throws OlderServer where the tables must be changed first, and a server runs: it would go on writing as it knows them */
function openBesideServer(dataFolder: string, progress: Progress): SqliteStore {
  using locks = new DisposableStack();
  return openStore(dataFolder, {
    migrationWatch: {
      onPending() {
        const lock = lockForServer(dataFolder);
        if (isRefusal(lock)) throw new OlderServer();
        locks.defer(lock.release);
      },
      onProgress: ({ done, total }) => progress.update(done, total),
    },
  });
}

/** What the command line does on a data folder. */
export const ledgerTools: Pick<CommandLineTools, "open" | "backUp" | "restore" | "runJob"> = {
  async open({ data, create }, progress) {
    const config = ledgerConfig(data, create);
    if (isRefusal(config)) return config;
    const secrets = readSecrets();
    return isRefusal(secrets) ? secrets : opened(config, secrets, progress);
  },
  async backUp({ data, ...input }) {
    const config = ledgerConfig(data, false);
    if (isRefusal(config)) return config;
    const secrets = readSecrets();
    if (isRefusal(secrets)) return secrets;
    const ledger = await opened(config, NO_SECRETS);
    return isRefusal(ledger) ? ledger : backUpFolder(config, secrets, ledger, input);
  },
  async restore({ data, ...input }) {
    const config = readConfig({ DATA: data });
    if (isRefusal(config)) return config;
    const usual = readConfig({});
    if (isRefusal(usual)) return usual;
    const secrets = readSecrets();
    return isRefusal(secrets) ? secrets : restoreFolder(config, secrets, usual.data, input);
  },
  async runJob({ data, job }) {
    const config = ledgerConfig(data, false);
    if (isRefusal(config)) return config;
    const secrets = readSecrets();
    if (isRefusal(secrets)) return secrets;
    const ledger = await opened(config, secrets);
    if (isRefusal(ledger)) return ledger;
    const { ctx, close } = ledger;
    try {
      // An attempt that is claimed but cannot be signed would delay its delivery, also for a running server.
      if (job === "webhooks") {
        const endpoints = await ctx.store.read((reader) => reader.webhooks.enabled());
        const refused = refuseUnopened(config, secrets, endpoints);
        if (refused) return refused;
      }
      const done = await runJobByHand(job, ctx);
      return isRefusal(done) ? done : { object: "job", job, done };
    } finally {
      await close();
    }
  },
};

/** The configuration for a folder that has a ledger, or where `create` says that one may be made. */
function ledgerConfig(data: string | undefined, create: boolean): Config | Refusal {
  const config = readConfig({ DATA: data });
  if (isRefusal(config)) return config;
  const refused = refuseHalfRestored(config.data);
  if (refused) return refused;
  return create || hasLedger(config.data)
    ? config
    : refuseField(
        "HOLDFAST_DATA",
        `there is no ledger in ${config.data}; holdfast organisations create makes one`,
      );
}

const opened = (config: Config, secrets: Secrets, progress?: Progress): Promise<OpenLedger | Refusal> =>
  openForCommands(config, secrets, progress).catch(settingRefusal);
