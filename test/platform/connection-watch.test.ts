import { afterEach, describe, expect, test } from "bun:test";
import { type ConnectionWatch, watchConnections } from "../../src/platform/connection-watch.ts";
import type { Peer, Sockets } from "../../src/platform/sockets.ts";
import { until } from "../support/until.ts";

const PORT = 8080;
const LIMITS = { all: 8, each: 2 };

let watch: ConnectionWatch | null = null;
afterEach(() => watch?.stop());

/** Descriptors as the system would have them. A shut down connection is gone at once. */
function fakeSockets(ends: Map<number, Peer & { readonly localPort?: number }>): Sockets {
  return {
    descriptors: () => [0, 1, 2, ...ends.keys()],
    count: () => 3 + ends.size,
    peerOf: (descriptor) => ends.get(descriptor) ?? null,
    localPortOf: (descriptor) => ends.get(descriptor)?.localPort ?? PORT,
    bytesReceived: () => 0,
    setQueue() {},
    shutDown: (descriptor) => void ends.delete(descriptor),
    duplicate: () => null,
    close() {},
    setLimit: () => false,
  };
}

/** Watches these connections, given as address and descriptor, until some were closed. Answers the descriptors that are left. */
async function leftOf(
  peers: readonly (readonly [address: string, descriptor: number, localPort?: number])[],
  trusted = "",
): Promise<number[]> {
  const ends = new Map(
    peers.map(([address, descriptor, localPort = PORT]) => [
      descriptor,
      { address, port: 50_000 + descriptor, localPort },
    ]),
  );
  watch = watchConnections({
    ...{ sockets: fakeSockets(ends), port: PORT, limits: LIMITS },
    isTrusted: (address) => address === trusted,
    onClosed: () => {},
    onFault: (error) => expect(error).toBeNull(),
  });
  await until("connections are closed", () => (watch?.closed() ?? 0) > 0);
  return [...ends.keys()];
}

test("an address keeps its share, and nobody else loses any", async () => {
  const stranger = [10, 11, 12, 13, 14].map((descriptor) => ["192.0.2.1", descriptor] as const);
  expect(await leftOf([...stranger, ["192.0.2.2", 20], ["192.0.2.2", 21]])).toEqual([10, 11, 20, 21]);
});

test("the addresses of a /64 share one share", async () => {
  const addresses = [
    "2001:db8:0:1:0:0:0:1",
    "2001:db8:0:1:0:0:0:2",
    "2001:db8:0:1:f:0:0:3",
    "2001:db8:0:2:0:0:0:1",
  ];
  expect(await leftOf(addresses.map((address, at) => [address, 10 + at]))).toEqual([10, 11, 13]);
});

test("a trusted proxy has no share of its own, up to all connections", async () => {
  const proxy = Array.from({ length: 9 }, (_, at) => ["192.0.2.9", 10 + at] as const);
  expect(await leftOf(proxy, "192.0.2.9")).toEqual([10, 11, 12, 13, 14, 15, 16, 17]);
});

test("what is no connection of the server is left alone", async () => {
  const outgoing = [10, 11, 12].map((descriptor) => ["192.0.2.1", descriptor, 40_000] as const);
  expect(await leftOf([...outgoing, ["192.0.2.1", 20], ["192.0.2.1", 21], ["192.0.2.1", 22]])).toEqual([
    10, 11, 12, 20, 21,
  ]);
});

test("at the listening socket alone more connections may wait to be accepted", () => {
  const queues: number[] = [];
  const ends = new Map([[10, { address: "192.0.2.1", port: 1 }]]);
  const sockets = fakeSockets(ends);
  watch = watchConnections({
    sockets: {
      ...sockets,
      // The first is an open file, the second listens.
      descriptors: () => [1, 2, 10],
      localPortOf: (descriptor) => (descriptor === 1 ? null : PORT),
      setQueue: (descriptor) => void queues.push(descriptor),
    },
    ...{ port: PORT, limits: LIMITS, isTrusted: () => false, onClosed: () => {} },
    onFault: (error) => expect(error).toBeNull(),
  });
  expect(queues).toEqual([2]);
});

describe("after a first look", () => {
  const STRANGER = "192.0.2.1";
  const NEIGHBOUR = "192.0.2.2";

  /** Watches the first connections, changes them when it has looked, and answers the descriptors that are left then. */
  async function leftAfter(first: Map<number, Peer>, change: () => void): Promise<number[]> {
    let looks = 0;
    const sockets = fakeSockets(first);
    watch = watchConnections({
      sockets: {
        ...sockets,
        descriptors() {
          looks += 1;
          return sockets.descriptors();
        },
      },
      ...{ port: PORT, limits: LIMITS, isTrusted: () => false, onClosed: () => {} },
      onFault: (error) => expect(error).toBeNull(),
    });
    // The first look has ended when the second begins.
    await until("it has looked", () => looks > 1);
    change();
    await until("connections are closed", () => (watch?.closed() ?? 0) > 0);
    return [...first.keys()];
  }

  test("the newest are closed, also where they have the descriptor of an older one", async () => {
    const open = new Map<number, Peer>([
      [10, { address: NEIGHBOUR, port: 1 }],
      [11, { address: STRANGER, port: 2 }],
      [12, { address: STRANGER, port: 3 }],
    ]);
    const left = await leftAfter(open, () => open.set(10, { address: STRANGER, port: 4 }));
    expect(left).toEqual([11, 12]);
  });

  test("those that have ended do not count", async () => {
    const open = new Map<number, Peer>([
      [10, { address: STRANGER, port: 1 }],
      [11, { address: STRANGER, port: 2 }],
    ]);
    const left = await leftAfter(open, () => {
      open.clear();
      for (const [at, address] of [STRANGER, STRANGER, NEIGHBOUR, NEIGHBOUR, NEIGHBOUR].entries()) {
        open.set(20 + at, { address, port: 100 + at });
      }
    });
    expect(left).toEqual([20, 21, 22, 23]);
  });
});
