import ipaddr from "ipaddr.js";
import { type Address, isInNetwork, type Network, parseAddress } from "../core/networks.ts";
import { type Bucket, type Budget, budgetOf, type RateLimits, windowOf } from "../core/rate.ts";

/** Callers of one kind counted one by one in a window; those beyond share one counter, so that memory has a bound. */
const CALLERS_MAX = 200_000;
const OVERFLOW = "*";

/** Who is counted: a key or a person that was recognised, or else an address. Of addresses a stranger has very many. */
export type Counted = { readonly kind: "account" | "address"; readonly id: string };

/** Fixed-window counters in process memory, by bucket and caller (interface.md, Rate-limit rules). */
export type RateCounters = {
  /** Counts a request and says what is left. */
  take(bucket: Bucket, caller: Counted, now: number): Budget;
  /** What is left, without counting. */
  peek(bucket: Bucket, caller: Counted, now: number): Budget;
};

export function createRateCounters(limits: RateLimits, callersMax = CALLERS_MAX): RateCounters {
  let window = -1;
  // Apart, so that a flood of addresses takes no room from keys and people.
  const used = { account: new Map<string, number>(), address: new Map<string, number>() };

  function counterOf(bucket: Bucket, { kind, id }: Counted, now: number) {
    const current = windowOf(now);
    if (current !== window) {
      window = current;
      used.account.clear();
      used.address.clear();
    }
    const counts = used[kind];
    const own = `${bucket} ${id}`;
    const key = counts.has(own) || counts.size < callersMax ? own : `${bucket} ${OVERFLOW}`;
    return { counts, key, count: counts.get(key) ?? 0 };
  }

  return {
    take(bucket, caller, now) {
      const { counts, key, count } = counterOf(bucket, caller, now);
      counts.set(key, count + 1);
      return budgetOf(limits[bucket], count + 1, now);
    },
    peek(bucket, caller, now) {
      return budgetOf(limits[bucket], counterOf(bucket, caller, now).count, now);
    },
  };
}

/** The client's address: the socket's, or what a trusted proxy in front of it says (decisions.md, Limits and errors). */
export function clientAddress(
  socketAddress: string | undefined,
  forwardedFor: string | null,
  trustedProxies: readonly Network[],
): string {
  let address = plainAddress(socketAddress ?? "");
  if (address === null) return "unknown";
  const hops = forwardedFor?.split(",").map((hop) => hop.trim()) ?? [];
  // The last hop was written by the nearest proxy; whoever is beyond an untrusted one could have written anything.
  for (let hop = hops.pop(); hop !== undefined && isTrusted(address, trustedProxies); hop = hops.pop()) {
    const next = plainAddress(hop);
    if (next === null) break;
    address = next;
  }
  return address instanceof ipaddr.IPv6 ? networkOf(address) : address.toString();
}

/** On `::`, an IPv4 client shows as `::ffff:1.2.3.4`. */
function plainAddress(text: string): Address | null {
  const address = parseAddress(text);
  return address instanceof ipaddr.IPv6 && address.isIPv4MappedAddress() ? address.toIPv4Address() : address;
}

const isTrusted = (address: Address, networks: readonly Network[]): boolean =>
  networks.some((network) => isInNetwork(address, network));

/** An IPv6 client owns its /64: counting single addresses would count nothing. */
const networkOf = (address: ipaddr.IPv6): string =>
  `${address.parts
    .slice(0, 4)
    .map((part) => part.toString(16))
    .join(":")}::/64`;
