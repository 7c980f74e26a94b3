import ipaddr from "ipaddr.js";
import { type Address, parseAddress } from "./networks.ts";

/** Where a request came from, as far as the service can see. */
export type Client = {
  /** The whole address, which a firewall can refuse; `unknown` where there is none. */
  readonly address: string;
  /** What limits count (docs/idempotency, "Limits"): the address, or of IPv6 the /64 network. */
  readonly network: string;
  /** The program, as it names itself: bounded, and in printable ASCII. */
  readonly agent: string;
};

const AGENT_LENGTH_MAX = 200;

/** @param userAgent the header as it was sent; null where there was none */
export const clientOf = (address: Address | null, userAgent: string | null): Client => ({
  address: address?.toString() ?? UNKNOWN,
  network: networkOf(address),
  agent: (userAgent ?? "").slice(0, AGENT_LENGTH_MAX).replace(/[^\x20-\x7e]/g, escaped),
});

const UNKNOWN = "unknown";

const escaped = (character: string): string => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;

/** An IPv6 client has a whole /64 network, and could use a new address for each request. */
export function networkOf(address: Address | null): string {
  if (address === null) return UNKNOWN;
  return address instanceof ipaddr.IPv6 ? prefixOf(address.parts, 64) : address.toString();
}

/** The networks around an IPv6 client's /64 that may belong to one customer; null for any other client. */
export function widerNetworks(network: string): { readonly of56: string; readonly of48: string } | null {
  const address = network.endsWith("/64") ? parseAddress(network.slice(0, -"/64".length)) : null;
  if (!(address instanceof ipaddr.IPv6)) return null;
  const { parts } = address;
  return { of56: prefixOf(parts, 56), of48: prefixOf(parts, 48) };
}

/** The first bits of an address, a multiple of 8, as a CIDR. */
function prefixOf(parts: readonly number[], bits: 48 | 56 | 64): string {
  const whole = parts.slice(0, Math.floor(bits / 16));
  const half = bits % 16 === 0 ? [] : [(parts[whole.length] ?? 0) & 0xff00];
  return `${[...whole, ...half].map((part) => part.toString(16)).join(":")}::/${bits}`;
}
