import ipaddr from "ipaddr.js";
import { type Address, isInNetwork, type Network, parseAddress } from "../core/networks.ts";
import { type Bucket, type Budget, budgetOf, type RateLimits, windowOf } from "../core/rate.ts";

/** How many callers of one kind have a counter of their own in a window. All others share one, so that memory is bounded. */
const CALLERS_MAX = 200_000;

/** Who is counted: a known key or person, otherwise the address. A stranger may have very many addresses. */
export type Counted = {
  readonly kind: "account" | "address";
  readonly id: string;
  /** Whether the caller acts in live. */
  readonly live?: boolean;
};

/** Fixed-window counters in process memory, by bucket and caller (docs/idempotency, "Limits"). */
export type RateCounters = {
  /** Counts a request, and answers the remaining budget. */
  take(bucket: Bucket, caller: Counted, now: number): Budget;
  /** The remaining budget, without counting a request. */
  peek(bucket: Bucket, caller: Counted, now: number): Budget;
};

type Counter = { used: number };

export function createRateCounters(limits: RateLimits, callersMax = CALLERS_MAX): RateCounters {
  let window = -1;
  // The two kinds have separate counters, so that a stranger with very many addresses does not use up those
  // of keys and people.
  let counters = { account: countersOfKind(callersMax), address: countersOfKind(callersMax) };

  function countersAt(now: number) {
    const current = windowOf(now);
    if (current !== window) {
      window = current;
      counters = { account: countersOfKind(callersMax), address: countersOfKind(callersMax) };
    }
    return counters;
  }

  return {
    take(bucket, { kind, id }, now) {
      const counter = countersAt(now)[kind].counterOf(bucket, id);
      counter.used += 1;
      return budgetOf(limits[bucket], counter.used, now);
    },
    peek(bucket, { kind, id }, now) {
      return budgetOf(limits[bucket], countersAt(now)[kind].usedBy(bucket, id), now);
    },
  };
}

/** The counters of one kind of caller in one window. */
function countersOfKind(callersMax: number) {
  const own = {
    read: new Map<string, Counter>(),
    write: new Map<string, Counter>(),
    bench: new Map<string, Counter>(),
  };
  const shared: Record<Bucket, Counter> = { read: { used: 0 }, write: { used: 0 }, bench: { used: 0 } };
  const isFull = () => own.read.size + own.write.size + own.bench.size >= callersMax;
  return {
    counterOf(bucket: Bucket, id: string): Counter {
      const known = own[bucket].get(id);
      if (known) return known;
      if (isFull()) return shared[bucket];
      const counter = { used: 0 };
      own[bucket].set(id, counter);
      return counter;
    },
    usedBy: (bucket: Bucket, id: string): number =>
      (own[bucket].get(id) ?? (isFull() ? shared[bucket] : undefined))?.used ?? 0,
  };
}

/** The client's address: the socket's, or the one that a trusted proxy passes on (docs/operating, "A proxy in front"). */
export function clientAddress(
  socketAddress: string | undefined,
  forwardedFor: string | null,
  trustedProxies: readonly Network[],
): Address | null {
  let address = plainAddress(socketAddress ?? "");
  if (address === null) return null;
  const hops = forwardedFor?.split(",").map((hop) => hop.trim()) ?? [];
  // The nearest proxy wrote the last hop. Everything before an untrusted hop may be invented.
  for (let hop = hops.pop(); hop !== undefined && isTrusted(address, trustedProxies); hop = hops.pop()) {
    const next = plainAddress(withoutPort(hop));
    if (next === null) break;
    address = next;
  }
  return address;
}

/** Some proxies write the client's port too: `203.0.113.7:4711`, `[2001:db8::7]:4711`. */
const withoutPort = (hop: string): string =>
  (/^\[(.+)\](?::\d{1,5})?$/.exec(hop) ?? /^([^:]+):\d{1,5}$/.exec(hop))?.[1] ?? hop;

/** On `::`, an IPv4 client shows as `::ffff:1.2.3.4`. */
function plainAddress(text: string): Address | null {
  const address = parseAddress(text);
  return address instanceof ipaddr.IPv6 && address.isIPv4MappedAddress() ? address.toIPv4Address() : address;
}

const isTrusted = (address: Address, networks: readonly Network[]): boolean =>
  networks.some((network) => isInNetwork(address, network));
