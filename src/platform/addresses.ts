import { networkInterfaces } from "node:os";
import ipaddr from "ipaddr.js";
import { type Address, isInNetwork, type Network, parseAddress, parseNetwork } from "../core/networks.ts";

/** Which addresses the service may connect to (decisions.md, Verification "The fetch"). */
export type AddressRules = {
  /** Whether a connection to the address and port is allowed; false for what is no address. */
  allows(address: string, port: number): boolean;
};

/** Where the service itself listens: never a source, whatever the operator allows. */
export type OwnListeners = () => readonly { readonly address: string; readonly port: number }[];

const networks = (...cidrs: string[]): readonly Network[] => cidrs.map((cidr) => ipaddr.parseCIDR(cidr));

/** Everything special in the IANA registry: private, loopback, link-local, CGNAT, documentation, multicast, reserved. */
const REFUSED_IPV4 = networks(
  "0.0.0.0/8",
  "10.0.0.0/8",
  "100.64.0.0/10",
  "127.0.0.0/8",
  "169.254.0.0/16",
  "172.16.0.0/12",
  "192.0.0.0/24",
  "192.0.2.0/24",
  "192.31.196.0/24",
  "192.52.193.0/24",
  "192.88.99.0/24",
  "192.168.0.0/16",
  "192.175.48.0/24",
  "198.18.0.0/15",
  "198.51.100.0/24",
  "203.0.113.0/24",
  "224.0.0.0/4",
  "240.0.0.0/4",
);

/** IPv6 is refused outside global unicast, so mapped and NAT64 addresses are too; and these within it (6to4 …). */
const GLOBAL_IPV6 = networks("2000::/3");
const REFUSED_IPV6 = networks("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20");

/** Where clouds answer with the machine's credentials: refused even where the operator allows the network. */
const METADATA = new Set(
  [
    "169.254.169.254",
    "169.254.170.2",
    "169.254.170.23",
    "169.254.169.253",
    "100.100.100.200",
    "168.63.129.16",
    "192.0.0.192",
    "fd00:ec2::254",
    "fd00:ec2::23",
    "fd20:ce::254",
    "fe80::a9fe:a9fe",
  ].map((text) => ipaddr.parse(text).toNormalizedString()),
);

/** What is wrong with an entry of an allow list, or null. */
export const networkProblem = (text: string): string | null =>
  parseNetwork(text) === null ? `"${text}" is not a CIDR such as 10.0.0.0/8` : null;

/** The rules. Throws on an entry of `allowNetworks` that `networkProblem` refuses. */
export function createAddressRules(
  allowNetworks: readonly string[],
  ownListeners: OwnListeners = () => [],
): AddressRules {
  const allowed = allowNetworks.map((text) => {
    const network = parseNetwork(text);
    if (network === null) throw new TypeError(networkProblem(text) ?? "");
    return network;
  });
  return {
    allows(text, port) {
      const address = parseAddress(text);
      if (address === null) return false;
      const meant = [address, ...embeddedIn(address)];
      if (meant.some((one) => METADATA.has(one.toNormalizedString()))) return false;
      if (meant.some((one) => isOwn(one, port, ownListeners))) return false;
      return isPublic(address) || allowed.some((network) => isInNetwork(address, network));
    },
  };
}

function isPublic(address: Address): boolean {
  if (address.kind() === "ipv4") return !REFUSED_IPV4.some((network) => isInNetwork(address, network));
  return (
    GLOBAL_IPV6.some((network) => isInNetwork(address, network)) &&
    !REFUSED_IPV6.some((network) => isInNetwork(address, network))
  );
}

/** The IPv4 addresses that an IPv6 one may reach: in its last 32 bits (mapped, NAT64), or as 6to4. */
function embeddedIn(address: Address): readonly Address[] {
  if (!(address instanceof ipaddr.IPv6)) return [];
  const bytes = address.toByteArray();
  const found = [bytes.slice(12, 16)];
  if (bytes[0] === 0x20 && bytes[1] === 0x02) found.push(bytes.slice(2, 6));
  return found.map((part) => new ipaddr.IPv4(part));
}

/**
 * Whether this reaches the service itself. A listener on any local address is taken to be on all of them, which
 * errs on the safe side.
 */
function isOwn(address: Address, port: number, ownListeners: OwnListeners): boolean {
  const listeners = ownListeners().filter((listener) => listener.port === port);
  if (listeners.length === 0) return false;
  const text = address.toNormalizedString();
  const range = address.range();
  if (range === "loopback" || range === "unspecified") return true;
  const local = Object.values(networkInterfaces()).flatMap((entries) => entries ?? []);
  return [...listeners, ...local].some(
    (one) => parseAddress(one.address.replace(/%.*$/, ""))?.toNormalizedString() === text,
  );
}
