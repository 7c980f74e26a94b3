import { networkInterfaces } from "node:os";
import ipaddr from "ipaddr.js";
import { type Address, isInNetwork, type Network, parseAddress, parseNetwork } from "../core/networks.ts";

/** Which addresses the service may connect to: public ones, and those in the networks that the operator allows. */
export type AddressRules = {
  /** Whether a connection to the address and port is allowed. False for text that is not an address. */
  allows(address: string, port: number): boolean;
};

/** Where the service itself listens. It never fetches from there, whatever the operator allows. */
export type OwnListeners = () => readonly { readonly address: string; readonly port: number }[];

/**
 * Only these IPv6 addresses may be public. The mapped and NAT64 forms of IPv4 addresses are outside, so they
 * are refused.
 */
const GLOBAL_IPV6: Network = ipaddr.parseCIDR("2000::/3");
/** The servers of AS112. These addresses are public, but ipaddr.js does not call their range unicast. */
const AS112_IPV6: Network = ipaddr.parseCIDR("2620:4f:8000::/48");

/**
 * At these addresses clouds give out the machine's credentials. They are refused even in an allowed network.
 */
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

/** The rules for these networks. Throws a `TypeError` on an entry that `networkProblem` refuses. */
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

/** Whether the address is in no special range of IANA's registries, such as private, loopback or documentation. */
function isPublic(address: Address): boolean {
  if (address.kind() === "ipv4") return address.range() === "unicast";
  return (
    isInNetwork(address, GLOBAL_IPV6) && (address.range() === "unicast" || isInNetwork(address, AS112_IPV6))
  );
}

/** The IPv4 addresses that an IPv6 address may lead to: by its last 32 bits (mapped, NAT64), or as 6to4. */
function embeddedIn(address: Address): readonly Address[] {
  if (!(address instanceof ipaddr.IPv6)) return [];
  const bytes = address.toByteArray();
  const found = [bytes.slice(12, 16)];
  if (bytes[0] === 0x20 && bytes[1] === 0x02) found.push(bytes.slice(2, 6));
  return found.map((part) => new ipaddr.IPv4(part));
}

/**
 * Whether a connection to the address and port reaches the service itself. A listener on one local address
 * counts as listening on all of them: it is safer to refuse too much.
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
