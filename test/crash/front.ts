import { connect, createServer, type Socket } from "node:net";

/** One address for several servers. Each connection goes to the next of them, as behind a proxy without stickiness. */
export type Front = {
  readonly url: string;
  /** Where connections go from now on. Those to other servers end. */
  lead(ports: readonly number[]): void;
  close(): void;
};

export async function createFront(): Promise<Front> {
  let ports: readonly number[] = [];
  let next = 0;
  /** The ports of the servers that they go to. */
  const clients = new Map<Socket, number>();
  const server = createServer((client) => {
    const port = ports[next++ % Math.max(1, ports.length)];
    if (port === undefined) {
      client.resetAndDestroy();
      return;
    }
    const upstream = connect(port, "127.0.0.1");
    clients.set(client, port);
    for (const [from, to] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      from.pipe(to);
      from.on("error", () => to.destroy());
      from.on("close", () => {
        clients.delete(client);
        to.destroy();
      });
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { readonly port: number };
  return {
    url: `http://127.0.0.1:${port}`,
    lead(those) {
      ports = those;
      for (const [client, to] of clients) if (!those.includes(to)) client.destroy();
    },
    close() {
      server.close();
      for (const client of clients.keys()) client.destroy();
    },
  };
}
