import { SQL } from "bun";
import { type FaultyProxy, startFaultyProxy } from "../support/faulty-proxy.ts";

/** The address of a database behind a proxy. */
export const through = (proxy: FaultyProxy, url: string): string => url.replace(/:\d+\//, `:${proxy.port}/`);

/** Clients and proxies of a test file, which are closed at its end. */
export function createConnections(port: () => number) {
  const closing: (() => unknown)[] = [];
  return {
    /** What else is to be closed then; the newest first. */
    closing,
    /** A client of one connection, that reads int8 as bigint. Its failures are quick, so that a test does not wait for them. */
    connectTo(url: string, options: SQL.Options = {}): SQL {
      const sql = new SQL(url, { max: 1, connectionTimeout: 5, bigint: true, ...options });
      closing.push(() => sql.close({ timeout: 0 }));
      return sql;
    },
    async newProxy(): Promise<FaultyProxy> {
      const proxy = await startFaultyProxy(port());
      closing.push(proxy.close);
      return proxy;
    },
    async closeAll(): Promise<void> {
      for (const close of closing.splice(0).reverse()) await close();
    },
  };
}
