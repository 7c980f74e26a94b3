import type { Config } from "../config.ts";
import { isInNetwork, type Network, parseAddress, parseNetwork } from "../core/networks.ts";
import { isHttps } from "../core/source-url.ts";
import { logWarning } from "../platform/log.ts";

/**
 * Warns where passwords, cookies and API keys may cross a network in the clear: where the service listens at an address that other
 * machines reach, or says that they reach it, and its base URL is not https.
 */
export function warnOfPlainHttp({ host }: Config, baseUrl: string): void {
  if (isHttps(baseUrl) || (isThisMachine(host) && isThisMachine(new URL(baseUrl).hostname))) return;
  logWarning(
    "plain http beyond this machine: passwords, cookies and API keys can be read on their way. Put a proxy with TLS in front, set HOLDFAST_BASE_URL to its https address, and HOLDFAST_TRUST_PROXY to the proxy",
    { host, base_url: baseUrl },
  );
}

const LOOPBACK = ["127.0.0.0/8", "::1/128"]
  .map(parseNetwork)
  .filter((each): each is Network => each !== null);

function isThisMachine(host: string): boolean {
  const address = parseAddress(host.replace(/^\[|\]$/g, ""));
  if (address === null) return /^(?:.+\.)?localhost$/i.test(host);
  return LOOPBACK.some((network) => isInNetwork(address, network));
}
