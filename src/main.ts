import packageJson from "../package.json" with { type: "json" };
import { backUpFolder, restoreFolder } from "./app/backups.ts";
import { refuseUnopened } from "./app/keys.ts";
import { AUDIT_ARGUMENT, auditFolder, JOBS } from "./app/operation.ts";
import { WAL_CHECKPOINT_ARGUMENT } from "./app/wal-checkpoint.ts";
import {
  docsUrlOf,
  EVALUATOR_ARGUMENT,
  hasLedger,
  openForCommands,
  refuseHalfRestored,
  startServer,
} from "./app.ts";
import { runCommandLine } from "./cli/program.ts";
import { startProgress } from "./cli/progress.ts";
import type { CommandLineTools, OpenLedger } from "./cli/tools.ts";
import {
  type Config,
  clearsLines,
  DEFAULTS,
  type Given,
  NO_SECRETS,
  readConfig,
  readSecrets,
  type Secrets,
} from "./config.ts";
import { isRefusal, type Refusal, refuseField, rootCause } from "./core/errors.ts";
import { createIds } from "./core/ids.ts";
import { NO_PROGRESS } from "./core/progress.ts";
import { runDemo } from "./demo/demo.ts";
import { inWords } from "./demo/narrate.ts";
import { createPaint } from "./demo/paint.ts";
import { inJson } from "./demo/record.ts";
import { openApiDocument } from "./http/app.ts";
import { errorBody } from "./http/errors.ts";
import { runAuditChild } from "./platform/audit-child.ts";
import { runEvaluatorChild } from "./platform/evaluator-child.ts";
import { logInfo } from "./platform/log.ts";
import { random40 } from "./platform/random.ts";
import { runWalCheckpointChild } from "./platform/wal-checkpoint-child.ts";
import { createWalCheckpoint } from "./store/sqlite/wal-checkpoint.ts";

const newId = createIds(Date.now, random40);

const tools: CommandLineTools = {
  version: packageJson.version,
  async open({ data, create }) {
    const config = ledgerConfig(data, create);
    if (isRefusal(config)) return config;
    const secrets = readSecrets();
    return isRefusal(secrets) ? secrets : opened(config, secrets);
  },
  async serve(options) {
    const config = readConfig(
      flags({
        DATA: options.data,
        HOST: options.host,
        PORT: options.port,
        BASE_URL: options.baseUrl,
        DOCS_URL: options.docsUrl,
        ALLOW_NETWORKS: options.allowNetworks,
        FETCH_SECONDS: options.fetchSeconds,
        TRUST_PROXY: options.trustProxy,
        LOG: options.log,
      }),
    );
    if (isRefusal(config)) return config;
    const secrets = readSecrets();
    if (isRefusal(secrets)) return secrets;
    const server = await startServer(config, secrets).catch(settingRefusal);
    if (isRefusal(server)) return server;
    const about = { version: packageJson.version, url: server.url, data_folder: config.data };
    logInfo("started", about);
    return {
      url: server.url,
      dataFolder: config.data,
      stopped: untilSignal()
        .then(server.stop)
        .then(() => logInfo("stopped", about))
        .then(exitSoon),
    };
  },
  async backUp({ data, ...input }) {
    const config = ledgerConfig(data, false);
    if (isRefusal(config)) return config;
    const ledger = await opened(config, NO_SECRETS);
    return isRefusal(ledger) ? ledger : backUpFolder(config, ledger, input);
  },
  async restore({ data, file }) {
    const config = readConfig(flags({ DATA: data }));
    return isRefusal(config) ? config : restoreFolder(config, file);
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
      // An attempt that is claimed and cannot be signed delays its delivery, for the server too.
      if (job === "webhooks") {
        const endpoints = await ctx.store.read((reader) => reader.webhooks.enabled());
        const refused = refuseUnopened(config, secrets, endpoints);
        if (refused) return refused;
      }
      return { object: "job", job, done: await JOBS[job](ctx, config) };
    } finally {
      await close();
    }
  },
  async demo({ data, exit, json }) {
    const config = readConfig({});
    if (isRefusal(config)) return config;
    return runDemo({
      config,
      data: data ?? null,
      keepServing: !exit,
      narrator: json
        ? inJson(tools.print)
        : inWords({ paint: createPaint(hasColours()), print: tools.print }),
      startProgress: json ? () => NO_PROGRESS : tools.startProgress,
      untilStopped: untilSignal,
    });
  },
  openApiDocument,
  serverAddress({ host, port }) {
    const config = readConfig(flags({ HOST: host, PORT: port }));
    return isRefusal(config) ? config : { host: config.host, port: config.port };
  },
  startProgress: (step) => {
    const { isTTY, columns } = process.stderr;
    return isTTY
      ? startProgress(step, { columns: columns || COLUMNS, clearsLines: clearsLines() })
      : NO_PROGRESS;
  },
  errorBody: (refusal) => errorBody(refusal, newId("request"), docsUrl()),
  print: (text) => void process.stdout.write(`${text}\n`),
  printError: (text) => void process.stderr.write(`${text}\n`),
};

/** The configuration. Refused where the folder has no ledger, unless `create` says that one may be made. */
function ledgerConfig(data: string | undefined, create: boolean): Config | Refusal {
  const config = readConfig(flags({ DATA: data }));
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

const opened = (config: Config, secrets: Secrets): Promise<OpenLedger | Refusal> =>
  openForCommands(config, secrets).catch(settingRefusal);

/** Where the link in an error's body leads: to the server's own pages, as in the API. */
function docsUrl(): string {
  const config = readConfig({});
  return docsUrlOf(isRefusal(config) ? DEFAULTS : config);
}

/** How wide a terminal is that does not say it. */
const COLUMNS = 80;

const hasColours = (): boolean => process.stdout.isTTY && process.stdout.hasColors();

/** The flags that were given, without those that are undefined. */
const flags = (given: Given): Given =>
  Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));

/** Resolves when the operator or the system asks for a stop. */
const untilSignal = (): Promise<void> =>
  new Promise((resolve) => {
    for (const signal of ["SIGTERM", "SIGINT"] as const) process.once(signal, () => resolve());
  });

/** After a stop, a source that hangs would keep the process alive. The next start undoes what it would have answered. */
const exitSoon = (): void => void setTimeout(() => process.exit(), EXIT_AFTER_MS).unref();
const EXIT_AFTER_MS = 200;

/** The setting that the operator has to change, where the machine refused the folder or the address. Throws any other error again. */
function settingRefusal(error: unknown): Refusal {
  const { code = "", syscall = "", message = "" } = rootCause(error) as NodeJS.ErrnoException;
  if (code === "EADDRINUSE") {
    return refuseField("HOLDFAST_PORT", "another program listens there already; choose another with --port");
  }
  if (syscall === "listen" || code === "EADDRNOTAVAIL" || (code === "EACCES" && syscall !== "mkdir")) {
    return refuseField(
      "HOLDFAST_HOST",
      `must be an address of this machine that it may listen on (${message})`,
    );
  }
  if (/^SQLITE_(NOTADB|CORRUPT)/.test(code)) {
    return refuseField(
      "HOLDFAST_DATA",
      `the ledger in it, holdfast.db, is damaged (${message}); restore a backup into another, empty folder`,
    );
  }
  if (FOLDER_SYSCALLS.has(syscall) || code.startsWith("SQLITE_")) {
    return refuseField("HOLDFAST_DATA", `must be a folder that can be written (${message})`);
  }
  throw error;
}

const FOLDER_SYSCALLS = new Set(["mkdir", "open", "chmod", "write", "fsync", "link"]);

// Whoever reads the output may stop early, as `head` does.
process.stdout.on("error", (error: NodeJS.ErrnoException) => process.exit(error.code === "EPIPE" ? 0 : 1));

if (process.argv[2] === EVALUATOR_ARGUMENT) await runEvaluatorChild();
if (process.argv[2] === AUDIT_ARGUMENT) await runAuditChild(() => auditFolder(process.argv[3] ?? ""));
if (process.argv[2] === WAL_CHECKPOINT_ARGUMENT)
  await runWalCheckpointChild(createWalCheckpoint(process.argv[3] ?? ""));
process.exitCode = await runCommandLine(tools, process.argv.slice(2));
