import { connect } from "node:net";
import { join } from "node:path";
import { prepareLedger, startServer } from "../bench/holdfast.ts";
import { atMost, type Row } from "../bench/table.ts";

/** How long the server keeps a connection on which nothing is asked. */
const IDLE_SECONDS = 10;
/** The timers of the server have steps of four seconds. */
const IDLE_STEP_SECONDS = 4;

export async function measureConnections(folder: string): Promise<Row[]> {
  const data = join(folder, "data");
  prepareLedger(data);
  await using server = await startServer(data);
  const port = Number(new URL(server.url).port);
  const [silent, afterRequest] = await Promise.all([openFor(port, ""), openFor(port, GET)]);
  const limit = { required: IDLE_SECONDS + IDLE_STEP_SECONDS };
  return [
    atMost("a connection that asks nothing is closed after", silent, limit, " s"),
    atMost("a connection between requests is closed after", afterRequest, limit, " s"),
  ];
}

const GET = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";
const GIVE_UP_SECONDS = 30;

/** For how many seconds the server keeps a connection on which this is sent, and then nothing; infinity where it keeps it. */
function openFor(port: number, sent: string): Promise<number> {
  const { promise, resolve } = Promise.withResolvers<number>();
  const startedAt = performance.now();
  const socket = connect(port, "127.0.0.1", () => socket.write(sent));
  const giveUp = setTimeout(() => resolve(Number.POSITIVE_INFINITY), GIVE_UP_SECONDS * 1_000);
  socket.on("data", () => {});
  socket.on("error", () => {});
  socket.on("close", () => {
    clearTimeout(giveUp);
    resolve((performance.now() - startedAt) / 1_000);
  });
  return promise.finally(() => socket.destroy());
}
