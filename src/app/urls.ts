import type { Config } from "../config.ts";

/** Where people reach the service: the configured base URL, or this machine. */
export const baseUrlOf = (config: Config, port = config.port): string =>
  config.baseUrl ?? `http://localhost:${port}`;

/** Where the links in errors lead: the configured URL, or the service's own pages. */
export const docsUrlOf = (config: Config, port = config.port): string =>
  config.docsUrl ?? `${baseUrlOf(config, port)}/docs`;
