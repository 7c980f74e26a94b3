import type { CommandLineTools, OpenLedger } from "../cli/tools.ts";
import { type Config, NO_SECRETS, readConfig, readSecrets, type Secrets } from "../config.ts";
import { isRefusal, type Refusal, refuseField } from "../core/errors.ts";
import { NO_PROGRESS, type Progress } from "../core/progress.ts";
import { NO_SIGN_IN_LOG } from "../platform/sign-in-log.ts";
import { serverHasRun } from "../services/instance.ts";
import type { MigrationWatch } from "../store/sql/migration-watch.ts";
import { hasLedger } from "../store/sqlite/ledger-file.ts";
import { OlderServer } from "../store/sqlite/ledger-version.ts";
import { refuseHalfRestored } from "../store/sqlite/restore.ts";
import { lockForServer } from "../store/sqlite/server-lock.ts";
import { backUpFolder, restoreFolder } from "./backups.ts";
import { composeContext } from "./context.ts";
import { folderOf, refuseBackups, refuseDatabase, refuseDataFlag } from "./database.ts";
import { keysOfCommand, refuseUnopened } from "./keys.ts";
import { runJobByHand } from "./operation.ts";
import { settingRefusal } from "./setting-refusal.ts";
import { type OpenedStore, openDatabase, openFolder } from "./store.ts";
import { baseUrlOf } from "./urls.ts";
import { witnessSeedOfCommand } from "./witnessing.ts";

/** The ledger without a server, for the command line. A server may be running on the same folder. */
export async function openForCommands(
  config: Config,
  secrets = NO_SECRETS,
  progress: Progress = NO_PROGRESS,
): Promise<OpenLedger> {
  await using opening = new AsyncDisposableStack();
  const { store, newestIdTime, instances } = await openBesideServer(config, secrets, progress);
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
  // It does not join the instances: what it does beside them is safe to do twice.
  opening.defer(instances.leave);
  const ledger = { store, newestIdTime, instances, shared };
  const { ctx } = composeContext(
    { config, secrets, ...ledger, keys, witnessSeed, baseUrl, ...alone },
    opening,
  );
  const opened = opening.move();
  return { ctx, close: () => opened.disposeAsync() };
}

async function openBesideServer(config: Config, secrets: Secrets, progress: Progress): Promise<OpenedStore> {
  const onProgress = ({ done, total }: { readonly done: number; readonly total: number }) =>
    progress.update(done, total);
  if (secrets.database)
    return openDatabase(secrets.database, secrets.databaseReplicas, config, {
      migrationWatch: { onProgress },
    });
  return openFolderBesideServer(config.data, onProgress);
}

/** @throws OlderServer where the tables must be changed first, and a server runs: it would go on writing as it knows them */
function openFolderBesideServer(dataFolder: string, onProgress: MigrationWatch["onProgress"]): OpenedStore {
  using locks = new DisposableStack();
  return openFolder(dataFolder, {
    migrationWatch: {
      onPending() {
        const lock = lockForServer(dataFolder);
        if (isRefusal(lock)) throw new OlderServer();
        locks.defer(lock.release);
      },
      onProgress,
    },
  });
}

/** What the command line does on a data folder. */
export const ledgerTools: Pick<CommandLineTools, "open" | "backUp" | "restore" | "runJob"> = {
  async open({ data, create }, progress) {
    const settings = ledgerSettings(data, create);
    return isRefusal(settings) ? settings : opened(settings.config, settings.secrets, progress);
  },
  async backUp({ data, ...input }) {
    const settings = ledgerSettings(data, false);
    if (isRefusal(settings)) return settings;
    const { config, secrets } = settings;
    if (secrets.database) return refuseBackups(config);
    const ledger = await opened(config, NO_SECRETS);
    return isRefusal(ledger) ? ledger : backUpFolder(config, secrets, ledger, input);
  },
  async restore({ data, ...input }) {
    const config = readConfig({ DATA: data });
    if (isRefusal(config)) return config;
    const usual = readConfig({});
    if (isRefusal(usual)) return usual;
    const secrets = readSecrets();
    if (isRefusal(secrets)) return secrets;
    if (secrets.database) return refuseBackups(config);
    return restoreFolder(config, secrets, usual.data, input);
  },
  async runJob({ data, job }) {
    const settings = ledgerSettings(data, false);
    if (isRefusal(settings)) return settings;
    const { config, secrets } = settings;
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

type Settings = { readonly config: Config; readonly secrets: Secrets };

/** The settings for a database, or for a folder that has a ledger, or where `create` says that one may be made. */
function ledgerSettings(data: string | undefined, create: boolean): Settings | Refusal {
  const config = readConfig({ DATA: data });
  if (isRefusal(config)) return config;
  const secrets = readSecrets();
  if (isRefusal(secrets)) return secrets;
  const refused =
    refuseDataFlag(data, secrets) ??
    refuseDatabase(config, secrets) ??
    (folderOf(config, secrets) === null ? null : refuseFolder(config.data, create));
  return refused ?? { config, secrets };
}

function refuseFolder(folder: string, create: boolean): Refusal | null {
  const refused = refuseHalfRestored(folder);
  return refused || create || hasLedger(folder)
    ? refused
    : refuseField(
        "HOLDFAST_DATA",
        `there is no ledger in ${folder}; holdfast organisations create makes one`,
      );
}

const opened = (config: Config, secrets: Secrets, progress?: Progress): Promise<OpenLedger | Refusal> =>
  openForCommands(config, secrets, progress).catch(settingRefusal);
