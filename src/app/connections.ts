import type { Config } from "../config.ts";
import { connectionsFor, limitsOfConnections } from "../core/connection-shares.ts";
import { type Refusal, refuseField } from "../core/errors.ts";
import { isInNetwork, parseAddress } from "../core/networks.ts";
import { MINUTE_MS } from "../core/time.ts";
import { watchConnections } from "../platform/connection-watch.ts";
import { descriptorLimit, holdReserve, SPARE_DESCRIPTORS, startFetching } from "../platform/descriptors.ts";
import { logFault, logWarning } from "../platform/log.ts";
import { systemSockets } from "../platform/sockets.ts";

/** What the server has open for itself: the ledger and its readers, the children, the log. */
const OWN_DESCRIPTORS = 64;
/** More connections than this are not taken unless the operator asks for them: each costs memory too. */
const CONNECTIONS_DEFAULT = 10_000;
/** With fewer descriptors than this a handful of clients is all that fits. */
const FEW_DESCRIPTORS = 1_024;

/** What the connections may take of the process. */
export type ConnectionPlan = {
  /** How many connections there may be. */
  readonly all: number;
  /** How many descriptors the process may have; null where the system does not say. */
  readonly descriptors: number | null;
};

/** Refuses more connections than the process has descriptors for. */
export function planConnections(
  { connections }: Config,
  descriptors = descriptorLimit(),
): ConnectionPlan | Refusal {
  if (descriptors === null) return { all: connections ?? CONNECTIONS_DEFAULT, descriptors };
  const most = descriptors - OWN_DESCRIPTORS - SPARE_DESCRIPTORS;
  if (connections !== null && connections > most) {
    const needed = OWN_DESCRIPTORS + SPARE_DESCRIPTORS;
    return refuseField(
      "HOLDFAST_CONNECTIONS",
      `must be at most ${Math.max(0, most)}: the process may have ${descriptors} file descriptors (ulimit -n), and ${needed} are kept for other things`,
    );
  }
  const fitting = connectionsFor(descriptors, OWN_DESCRIPTORS, SPARE_DESCRIPTORS);
  return { all: connections ?? Math.min(CONNECTIONS_DEFAULT, fitting), descriptors };
}

export type GuardedConnections = {
  /** How many connections were closed since they were over a limit. */
  readonly closed: () => number;
  stop(): void;
};

/** Holds the limits from now on, as far as the system lets it (docs/operating, "A proxy in front"). */
export function guardConnections(
  { trustProxy }: Config,
  port: number,
  plan: ConnectionPlan,
): GuardedConnections {
  void startFetching();
  const sockets = systemSockets();
  const { all, descriptors } = plan;
  if (sockets === null || descriptors === null) {
    logWarning("connections are not counted on this system: a proxy in front must limit them", {});
    return { closed: () => 0, stop() {} };
  }
  if (descriptors < FEW_DESCRIPTORS) {
    logWarning("few file descriptors: raise `ulimit -n`", { descriptors, connections: all });
  }
  const release = holdReserve(descriptors);
  const watch = watchConnections({
    sockets,
    port,
    limits: limitsOfConnections(all),
    isTrusted: (text) => {
      const address = parseAddress(text);
      return address !== null && trustProxy.some((network) => isInNetwork(address, network));
    },
    onFault: (error) => logFault("connections could not be counted", error),
    onClosed: atMostOnceAMinute((connections, addresses) =>
      logWarning("closed connections over the limit", { connections, addresses }),
    ),
  });
  return {
    closed: watch.closed,
    stop() {
      watch.stop();
      release();
    },
  };
}

function atMostOnceAMinute<Values extends unknown[]>(
  log: (...values: Values) => void,
): (...values: Values) => void {
  let next = 0;
  return (...values) => {
    if (performance.now() < next) return;
    next = performance.now() + MINUTE_MS;
    log(...values);
  };
}
