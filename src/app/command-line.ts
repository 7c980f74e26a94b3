import type { RunningServer } from "../app.ts";
import { runCommandLine } from "../cli/program.ts";
import { startProgress } from "../cli/progress.ts";
import type { CommandLineTools } from "../cli/tools.ts";
import { clearsLines, DEFAULTS, readConfig, readSecrets } from "../config.ts";
import { isRefusal } from "../core/errors.ts";
import { createIds } from "../core/ids.ts";
import { NO_PROGRESS, type StartProgress } from "../core/progress.ts";
import { logInfo, logTo } from "../platform/log.ts";
import { random40 } from "../platform/random.ts";
import { errorResource } from "../resources/error.ts";
import { settingRefusal } from "./setting-refusal.ts";
import { docsUrlOf } from "./urls.ts";

/**
 * Runs one command line to its end, and answers the exit code. The rooms behind a command are imported when it needs them:
 * `holdfast health` needs no ledger, and no command but `serve` and `demo` needs the server.
 *
 * @param args what follows the executable's name
 */
export function runProgram(version: string, args: readonly string[]): Promise<number> {
  return runCommandLine(toolsOf(version), args);
}

const newId = createIds(Date.now, random40);
const importLedgerTools = async () => (await import("./ledger.ts")).ledgerTools;

const toolsOf = (version: string): CommandLineTools => ({
  version,
  open: async (options, progress) => (await importLedgerTools()).open(options, progress),
  backUp: async (options) => (await importLedgerTools()).backUp(options),
  restore: async (options) => (await importLedgerTools()).restore(options),
  copy: async (flags, startProgress) => (await import("./copy.ts")).copyLedger(flags, startProgress),
  runJob: async (options) => (await importLedgerTools()).runJob(options),
  async serve(options, progress) {
    const config = readConfig({
      DATA: options.data,
      HOST: options.host,
      PORT: options.port,
      BASE_URL: options.baseUrl,
      DOCS_URL: options.docsUrl,
      ALLOW_NETWORKS: options.allowNetworks,
      FETCH_SECONDS: options.fetchSeconds,
      TRUST_PROXY: options.trustProxy,
      LOG: options.log,
    });
    if (isRefusal(config)) return config;
    const secrets = readSecrets();
    if (isRefusal(secrets)) return secrets;
    const { folderOf, refuseDataFlag } = await import("./database.ts");
    const refused = refuseDataFlag(options.data, secrets);
    if (refused) return refused;
    const { startServer } = await import("../app.ts");
    const server = await startServer(config, secrets, progress).catch(settingRefusal);
    if (isRefusal(server)) return server;
    const dataFolder = folderOf(config, secrets);
    const { nameOfDatabase } = await import("../store/postgres/address.ts");
    const database = secrets.database && nameOfDatabase(secrets.database);
    const about = { version, url: server.url, ...(database ? { database } : { data_folder: dataFolder }) };
    logInfo("started", about);
    return {
      url: server.url,
      ...{ dataFolder, database },
      setUpUrl: server.setUpUrl,
      stopped: untilStopped(server, () => logInfo("stopped", about)),
    };
  },
  async demo({ data, exit, json }) {
    const config = readConfig({});
    if (isRefusal(config)) return config;
    const { runDemo } = await import("../demo/demo.ts");
    const { createPaint } = await import("../demo/paint.ts");
    const { inJson } = await import("../demo/record.ts");
    const { inWords } = await import("../demo/narrate.ts");
    return runDemo({
      config,
      data: data ?? null,
      keepServing: !exit,
      narrator: json ? inJson(print) : inWords({ paint: createPaint(hasColours()), print }),
      startProgress: json ? () => NO_PROGRESS : startProgressOnTerminal,
      logTo,
      untilStopped: untilSignal,
    });
  },
  replayCheck: async (file, flags) => (await import("./replay.ts")).replayAlone(file, flags),
  async openApiDocument() {
    const { openApiDocument } = await import("../http/app.ts");
    return openApiDocument();
  },
  serverAddress({ host, port }) {
    const config = readConfig({ HOST: host, PORT: port });
    return isRefusal(config) ? config : { host: config.host, port: config.port };
  },
  startProgress: startProgressOnTerminal,
  errorBody: (refusal) => errorResource(refusal, newId("request"), docsUrl()),
  print,
  printError: (text) => void process.stderr.write(`${text}\n`),
});

/** The width that is assumed of a terminal that does not say its own. */
const COLUMNS = 80;

const startProgressOnTerminal: StartProgress = (step) => {
  const { isTTY, columns } = process.stderr;
  return isTTY
    ? startProgress(step, { columns: columns || COLUMNS, clearsLines: clearsLines() })
    : NO_PROGRESS;
};

let output: NodeJS.WriteStream | null = null;
function print(text: string): void {
  // The reader of a pipe may stop early, as `head` does.
  output ??= process.stdout.on("error", ({ code }: NodeJS.ErrnoException) =>
    process.exit(code === "EPIPE" ? 0 : 1),
  );
  output.write(`${text}\n`);
}

/** Where the link in an error's body leads: to the server's own pages, as in the API. */
function docsUrl(): string {
  const config = readConfig({});
  return docsUrlOf(isRefusal(config) ? DEFAULTS : config);
}

const hasColours = (): boolean => process.stdout.isTTY && process.stdout.hasColors();

/** Resolves when the operator or the system asks for a stop. */
const untilSignal = (): Promise<void> =>
  new Promise((resolve) => {
    for (const signal of ["SIGTERM", "SIGINT"] as const) process.once(signal, () => resolve());
  });

/** @throws why it must not go on, where nobody has asked for the stop */
async function untilStopped({ mustStop, stop }: RunningServer, onStopped: () => void): Promise<void> {
  const why = await Promise.race([untilSignal(), ...(mustStop ? [mustStop] : [])]).catch(
    (error: unknown) => error,
  );
  try {
    await stop();
    onStopped();
  } finally {
    exitSoon();
  }
  if (why) throw why;
}

const EXIT_AFTER_MS = 200;
/** After a stop, a fetch from a source that hangs would keep the process alive. The next start undoes its check. */
const exitSoon = (): void => void setTimeout(() => process.exit(), EXIT_AFTER_MS).unref();
