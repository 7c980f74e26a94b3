import type { Refusal } from "../core/errors.ts";
import type { Context } from "../services/context.ts";

/** What the command line needs of the rooms that it may not know; `main.ts` hands it in. */
export type CommandLineTools = {
  readonly version: string;
  /** Opens the ledger of a data folder, or with `create` makes one. A server may be running on the same folder. */
  open(options: DataOption & { readonly create: boolean }): Promise<OpenLedger | Refusal>;
  /** Starts the server, and resolves once it listens. */
  serve(options: ServeOptions): Promise<RunningServer | Refusal>;
  /** Tells its story through `print`, with `json` as one object. Resolves when it is over, or when a signal has stopped the server that it keeps. */
  demo(options: DemoOptions): Promise<Refusal | null>;
  openApiDocument(): unknown;
  /** Where a server with this configuration listens. */
  serverAddress(options: AddressOptions): ServerAddress | Refusal;
  /** The envelope of a refusal, as the API answers it. */
  errorBody(refused: Refusal): object;
  /** Whole lines on stdout; the last newline is added. */
  print(text: string): void;
  /** The same on stderr. */
  printError(text: string): void;
};

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
  };
export type DemoOptions = DataOption & { readonly exit: boolean; readonly json: boolean };
