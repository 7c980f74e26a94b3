import type { Refusal } from "../core/errors.ts";
import type { Progress, StartProgress } from "../core/progress.ts";
import type { BackupInput, BackupResource, RestoreInput, RestoreResource } from "../services/admin/backup.ts";
import type { CopyResource } from "../services/admin/copy.ts";
import type { CheckReplay } from "../services/checks/replay.ts";
import type { Context } from "../services/context.ts";

/** What the command line needs from rooms that it may not import. `main.ts` passes it in. */
export type CommandLineTools = {
  readonly version: string;
  /**
   * Opens the ledger of a data folder. With `create` it makes one where there is none. A server may be running on the folder.
   *
   * @param progress shows how far a change of the tables has come
   */
  open(flags: DataFlag & { readonly create: boolean }, progress?: Progress): Promise<OpenLedger | Refusal>;
  /** Starts the server, and resolves when it listens. `progress` is as for `open`. */
  serve(flags: ServeFlags, progress: Progress): Promise<RunningServer | Refusal>;
  /** Copies the ledger of a data folder into a new file. A server may be running on the folder. */
  backUp(flags: DataFlag & BackupInput): Promise<BackupResource | Refusal>;
  /** Puts a backup into an empty or missing data folder. */
  restore(flags: DataFlag & RestoreInput): Promise<RestoreResource | Refusal>;
  /** Copies a ledger between a data folder and a database. No server may be running on either. */
  copy(flags: CopyFlags, startProgress: StartProgress): Promise<CopyResource | Refusal>;
  /** Runs a job once. A server may be running on the folder. */
  runJob(flags: DataFlag & { readonly job: JobByHand }): Promise<JobRun | Refusal>;
  /**
   * Plays the demo and prints its story; with `json`, as one object. Resolves when the story is over; without
   * `exit`, only after a signal has stopped the server.
   */
  demo(flags: DemoFlags): Promise<Refusal | null>;
  /** Makes a check again from its export. It needs no ledger. */
  replayCheck(file: unknown, flags: ReplayFlags): Promise<CheckReplay | Refusal>;
  openApiDocument(): Promise<object>;
  /** The address at which a server with this configuration listens. */
  serverAddress(flags: AddressFlags): ServerAddress | Refusal;
  /** The error's body for a refusal, as the API answers it. */
  errorBody(refused: Refusal): object;
  /** On a terminal, shows on stderr how far long work has come; elsewhere shows nothing. */
  readonly startProgress: StartProgress;
  /** Prints whole lines on stdout. The last newline is added. */
  print(text: string): void;
  /** Prints whole lines on stderr. */
  printError(text: string): void;
};

/** The jobs of the server that may also be run by hand. */
export const JOBS_BY_HAND = [
  "deadlines",
  "agents",
  "recover",
  "retention",
  "reminders",
  "webhooks",
  "anchor",
] as const;
export type JobByHand = (typeof JOBS_BY_HAND)[number];

/** `done` is how many things the job did; null where it does not count them. */
export type JobRun = { readonly object: "job"; readonly job: JobByHand; readonly done: number | null };

export type OpenLedger = { readonly ctx: Context; close(): Promise<void> };

export type RunningServer = {
  /** Where it listens, such as `http://127.0.0.1:8080`. */
  readonly url: string;
  /** Null where the ledger is in a database. */
  readonly dataFolder: string | null;
  /** The name of that database; null where the ledger is in the data folder. */
  readonly database: string | null;
  /** The link with which the first organisation is made; null where there is one. */
  readonly setUpUrl: string | null;
  /** Resolves when a signal has stopped the server and its running requests and jobs have ended. */
  readonly stopped: Promise<void>;
};

export type ServerAddress = { readonly host: string; readonly port: number };

/** Options as they were typed. Missing ones come from the environment, else from the defaults. `config.ts` checks them all. */
export type DataFlag = { readonly data?: string };
export type AddressFlags = { readonly host?: string; readonly port?: string };
export type ServeFlags = DataFlag &
  AddressFlags & {
    readonly baseUrl?: string;
    readonly docsUrl?: string;
    readonly allowNetworks?: string;
    readonly fetchSeconds?: string;
    readonly trustProxy?: string;
    readonly log?: string;
  };
/** Each side is a folder, or the address of a database. */
export type CopyFlags = DataFlag & { readonly from?: string; readonly to?: string };
export type ReplayFlags = { readonly sigstoreRoot?: string };
export type DemoFlags = DataFlag & { readonly exit: boolean; readonly json: boolean };
