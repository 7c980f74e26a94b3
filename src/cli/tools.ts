import type { Refusal } from "../core/errors.ts";
import type { BackupInput, BackupResource, RestoreResource } from "../services/admin/backup.ts";
import type { Context } from "../services/context.ts";

/** What the command line needs of the rooms that it may not know; `main.ts` hands it in. */
export type CommandLineTools = {
  readonly version: string;
  /** Opens the ledger of a data folder, or with `create` makes one. A server may be running on the same folder. */
  open(options: DataOption & { readonly create: boolean }): Promise<OpenLedger | Refusal>;
  /** Starts the server, and resolves once it listens. */
  serve(options: ServeOptions): Promise<RunningServer | Refusal>;
  /** Copies a data folder's ledger, beside a server that may be running, into a new file. */
  backUp(options: DataOption & BackupInput): Promise<BackupResource | Refusal>;
  /** Puts a backup into an empty or missing data folder. */
  restore(options: DataOption & { readonly file: string }): Promise<RestoreResource | Refusal>;
  /** Runs a job once, beside a server that may be running. */
  runJob(options: DataOption & { readonly job: JobByHand }): Promise<JobRun | Refusal>;
  /** Tells its story through `print`, with `json` as one object. Resolves when it is over, or when a signal has stopped the server that it keeps. */
  demo(options: DemoOptions): Promise<Refusal | null>;
  openApiDocument(): Promise<object>;
  /** Where a server with this configuration listens. */
  serverAddress(options: AddressOptions): ServerAddress | Refusal;
  /** The envelope of a refusal, as the API answers it. */
  errorBody(refused: Refusal): object;
  /** Whole lines on stdout; the last newline is added. */
  print(text: string): void;
  /** The same on stderr. */
  printError(text: string): void;
};

/** The jobs of the server that may also be run by hand. */
export const JOBS_BY_HAND = ["deadlines", "agents", "recover", "retention", "reminders", "webhooks"] as const;
export type JobByHand = (typeof JOBS_BY_HAND)[number];

/** `done` is how many the job found to do; null where it does not count. */
export type JobRun = { readonly object: "job"; readonly job: JobByHand; readonly done: number | null };

export type OpenLedger = { readonly ctx: Context; close(): Promise<void> };

export type RunningServer = {
  /** Where it listens, such as `http://127.0.0.1:8080`. */
  readonly url: string;
  readonly dataFolder: string;
  /** Resolves when a signal has stopped it and what was running has drained. */
  readonly stopped: Promise<void>;
};

export type ServerAddress = { readonly host: string; readonly port: number };

/** Flags as they were given. What is missing comes from the environment, then from the defaults; the config checks both. */
export type DataOption = { readonly data?: string };
export type AddressOptions = { readonly host?: string; readonly port?: string };
export type ServeOptions = DataOption &
  AddressOptions & {
    readonly baseUrl?: string;
    readonly docsUrl?: string;
    readonly allowNetworks?: string;
    readonly fetchSeconds?: string;
    readonly trustProxy?: string;
    readonly log?: string;
  };
export type DemoOptions = DataOption & { readonly exit: boolean; readonly json: boolean };
