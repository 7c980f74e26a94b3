import { connect, createServer, type Socket } from "node:net";

/** Which way bytes go. What is lost on the way to the server was never asked; on the way back, it may have been done. */
type Direction = "to server" | "to client";

/** A proxy between a service and its database, which breaks the connections between them in every way that a network can. */
export type FaultyProxy = {
  readonly port: number;
  /** How many connections go through it now. */
  readonly connections: number;
  /** How often a client spoke after its server had: each is a round trip that the client waited for. */
  readonly roundTrips: number;
  /** Passes everything on again, held bytes first. Connections that were broken stay so. */
  pass(): void;
  /** Passes each chunk on so much later, in both directions. */
  delay(ms: number): void;
  /** Holds everything in one direction, and closes nothing: as if packets were lost. */
  hold(direction: Direction): void;
  /** Passes the first half of the next chunk in this direction on, and then resets that connection. Once. */
  halve(direction: Direction): void;
  /** Resets all connections, and refuses new ones until `pass`. */
  drop(): void;
  /** Resets all clients. Their servers read all that they were sent, and only then that nobody is there. */
  part(): void;
  /** Resets all connections, and sends new ones to another server. */
  moveTo(port: number): void;
  close(): void;
};

type Mode = { readonly delayMs: number; readonly held: Direction | null; readonly isDown: boolean };
const PASSING: Mode = { delayMs: 0, held: null, isDown: false };

export async function startFaultyProxy(port: number): Promise<FaultyProxy> {
  const pairs = new Set<Pair>();
  let target = port;
  let mode = PASSING;
  let halved: Direction | null = null;
  let roundTrips = 0;

  const server = createServer((client) => {
    if (mode.isDown) {
      client.resetAndDestroy();
      return;
    }
    const upstream = connect(target, "127.0.0.1");
    const pair = new Pair(client, upstream, {
      mode: () => mode,
      takeHalved(direction) {
        const isHalved = halved === direction;
        if (isHalved) halved = null;
        return isHalved;
      },
      ended: () => void pairs.delete(pair),
      wentRound() {
        roundTrips += 1;
      },
    });
    pairs.add(pair);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));

  const set = (next: Partial<Mode>) => {
    mode = { ...PASSING, ...next };
    for (const pair of pairs) pair.flush();
  };
  const reset = () => {
    for (const pair of pairs) pair.reset();
  };
  return {
    port: (server.address() as { port: number }).port,
    get connections() {
      return pairs.size;
    },
    get roundTrips() {
      return roundTrips;
    },
    pass() {
      halved = null;
      set({});
    },
    delay: (delayMs) => set({ delayMs }),
    hold: (held) => set({ held }),
    halve(direction) {
      halved = direction;
    },
    drop() {
      set({ isDown: true });
      reset();
    },
    part() {
      for (const pair of pairs) pair.part();
    },
    moveTo(other) {
      target = other;
      reset();
    },
    close() {
      server.close();
      reset();
    },
  };
}

type Rules = {
  readonly mode: () => Mode;
  readonly takeHalved: (direction: Direction) => boolean;
  readonly ended: () => void;
  readonly wentRound: () => void;
};

/** A connection of a client, and that to the server behind it. */
class Pair {
  private readonly lanes: readonly Lane[];
  private isParted = false;

  constructor(
    private readonly client: Socket,
    private readonly upstream: Socket,
    private readonly rules: Rules,
  ) {
    const reset = () => this.reset();
    let hasAnswered = true;
    const asked = () => {
      if (hasAnswered) rules.wentRound();
      hasAnswered = false;
    };
    const answered = () => {
      hasAnswered = true;
    };
    this.lanes = [
      new Lane(client, upstream, "to server", rules, asked, reset),
      new Lane(upstream, client, "to client", rules, answered, reset),
    ];
    for (const socket of [client, upstream]) {
      socket.setNoDelay(true);
      socket.on("error", reset);
      socket.on("close", reset);
    }
  }

  flush(): void {
    for (const lane of this.lanes) lane.flush();
  }

  part(): void {
    this.isParted = true;
    this.upstream.end();
    this.reset();
  }

  reset(): void {
    this.client.resetAndDestroy();
    if (!this.isParted) this.upstream.resetAndDestroy();
    this.rules.ended();
  }
}

/** One direction of a connection: its chunks, in their order. */
class Lane {
  private waiting: { readonly chunk: Buffer; readonly dueAt: number }[] = [];

  constructor(
    source: Socket,
    private readonly sink: Socket,
    private readonly direction: Direction,
    private readonly rules: Rules,
    private readonly passed: () => void,
    private readonly reset: () => void,
  ) {
    source.on("data", (chunk: Buffer) => this.take(chunk));
    source.on("end", () => sink.end());
  }

  private take(chunk: Buffer): void {
    if (this.rules.takeHalved(this.direction)) {
      this.sink.write(chunk.subarray(0, Math.ceil(chunk.length / 2)), this.reset);
      return;
    }
    const { delayMs } = this.rules.mode();
    this.waiting.push({ chunk, dueAt: performance.now() + delayMs });
    if (delayMs > 0) setTimeout(() => this.flush(), delayMs + 1);
    else this.flush();
  }

  /** Passes on what is due and not held. */
  flush(): void {
    const { held, delayMs } = this.rules.mode();
    if (held === this.direction) return;
    const now = performance.now();
    while (this.waiting[0] && (delayMs === 0 || this.waiting[0].dueAt <= now)) {
      this.passed();
      this.sink.write((this.waiting.shift() as { chunk: Buffer }).chunk);
    }
  }
}
