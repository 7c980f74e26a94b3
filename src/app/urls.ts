import type { Config } from "../config.ts";

/** Where people reach the service, unless the configuration names another place. */
export const baseUrlOf = (config: Config, port = config.port): string =>
  config.baseUrl ?? `http://localhost:${port}`;

/** Where the links in errors lead: to the service's own pages, unless the configuration names another place. */
export const docsUrlOf = (config: Config, port = config.port): string =>
  config.docsUrl ?? `${baseUrlOf(config, port)}/docs`;
