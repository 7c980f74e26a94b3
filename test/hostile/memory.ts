import { readdirSync, readFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { prepareLedger, type RunningServer, startBeside, startServer } from "../bench/holdfast.ts";
import { DAY_MS } from "../bench/load.ts";
import { atLeast, atMost, noted, type Row, under } from "../bench/table.ts";

const SOURCE_PORT = 18_095;
/** What all processes may use together, whatever strangers send. */
const MIB_MAX = 1_536;
const SAMPLE_MS = 50;

/** The memory of the server and all of its children, while strangers send and name what takes the most. */
export async function measureMemory(folder: string): Promise<Row[]> {
  const data = join(folder, "data");
  const secret = prepareLedger(data);
  await using source = await startBeside(join(import.meta.dir, "large-source.ts"), SOURCE_PORT);
  await using server = await startServer(data, {
    settings: { HOLDFAST_RATE_BENCH: "100000000", HOLDFAST_X402_ALLOW_NETWORKS: "127.0.0.0/8" },
  });
  const rows: Row[] = [noted("memory of all processes, idle", `${memoryOf(server.pid)} MiB`)];
  for (const [bodies, addresses] of [
    [128, 1],
    [512, 64],
  ] as const) {
    const { peak } = await peakWhile(server, () => halfSent(server, bodies, addresses, wholePieces));
    rows.push(judged(`${bodies} half-sent bodies of 1 MiB, from ${addresses} addresses`, peak));
  }
  const { peak } = await peakWhile(server, () => halfSent(server, 32, 8, piecesOfAByte));
  rows.push(judged("32 bodies in chunks of a byte each", peak));
  for (const checks of [8, 64]) rows.push(...(await largeChecks(server, secret, source.url, checks)));
  rows.push(...(await slowReaders(server, secret, source.url, 100)));
  return rows;
}

const judged = (what: string, mebibytes: number): Row =>
  atMost(what, mebibytes, { required: MIB_MAX }, " MiB");

/** Runs work, and answers the highest memory that was seen meanwhile, in MiB. */
async function peakWhile<Result>(server: RunningServer, work: () => Promise<Result>) {
  let peak = 0;
  const timer = setInterval(() => {
    peak = Math.max(peak, memoryOf(server.pid));
  }, SAMPLE_MS);
  try {
    const result = await work();
    return { peak, result };
  } finally {
    clearInterval(timer);
  }
}

/** The proportional memory of a process and its descendants, in MiB. A process may end while it is looked at. */
function memoryOf(pid: number): number {
  const children = (process: number): readonly number[] =>
    read(`/proc/${process}/task`, (path) => readdirSync(path), []).flatMap((task) =>
      read(`/proc/${process}/task/${task}/children`, text, "").split(" ").filter(Boolean).map(Number),
    );
  const own = Number(/^Pss:\s+(\d+) kB/m.exec(read(`/proc/${pid}/smaps_rollup`, text, ""))?.[1] ?? 0);
  return children(pid).reduce((sum, child) => sum + memoryOf(child), Math.round(own / 1024));
}

const text = (path: string): string => readFileSync(path, "utf8");

function read<Found>(path: string, with_: (path: string) => Found, otherwise: Found): Found {
  try {
    return with_(path);
  } catch {
    return otherwise;
  }
}

const BODY_BYTES = 1024 * 1024;
const PIECE = Buffer.alloc(BODY_BYTES / 16, " ");
const BYTES_OF_THEIR_OWN = Buffer.from("1\r\n \r\n".repeat(PIECE.length));
type Pieces = { readonly header: string; readonly piece: Buffer };
const wholePieces: Pieces = { header: `Content-Length: ${BODY_BYTES}`, piece: PIECE };
const piecesOfAByte: Pieces = { header: "Transfer-Encoding: chunked", piece: BYTES_OF_THEIR_OWN };
/** Longer than a body may take. */
const HELD_MS = 16_000;

/** Sends bodies that lack their last sixteenth, and keeps the connections open. */
async function halfSent(server: RunningServer, bodies: number, addresses: number, { header, piece }: Pieces) {
  const port = Number(new URL(server.url).port);
  const head = `POST /bench/run HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n${header}\r\n\r\n`;
  const sockets = Array.from({ length: bodies }, (_, index): Socket => {
    const socket = connect({
      port,
      host: "127.0.0.1",
      localAddress: `127.0.1.${1 + (index % addresses)}`,
    });
    socket.on("error", () => {});
    socket.write(head);
    for (let sent = 0; sent < 15; sent++) socket.write(piece);
    return socket;
  });
  await Bun.sleep(HELD_MS);
  for (const socket of sockets) socket.destroy();
}

/** Callers who ask for an answer of 60 MiB again, and take nothing of it. */
async function slowReaders(server: RunningServer, secret: string, source: string, readers: number) {
  const body = JSON.stringify({ url: `${source}/control`, max_amount: "1", spec: SPEC });
  const head = [
    "POST /v1/x402/pay HTTP/1.1",
    ...["Host: a", `Authorization: Bearer ${secret}`, "Idempotency-Key: large"],
    ...["Content-Type: application/json", `Content-Length: ${body.length}`],
  ];
  const ask = async () => {
    const socket = connect(Number(new URL(server.url).port), "127.0.0.1");
    const status = Promise.withResolvers<number>();
    socket.on("error", () => {});
    socket.once("data", (start) => {
      socket.pause();
      status.resolve(Number(start.toString("latin1").slice(9, 12)));
    });
    socket.once("close", () => status.resolve(0));
    socket.write(`${head.join("\r\n")}\r\n\r\n${body}`);
    return { socket, status: await status.promise };
  };
  (await ask()).socket.destroy();
  const { peak, result } = await peakWhile(server, async () => {
    const asked = await Promise.all(Array.from({ length: readers }, ask));
    await Bun.sleep(HELD_MS);
    for (const { socket } of asked) socket.destroy();
    return asked;
  });
  const answered = result.filter(({ status }) => status === 200).length;
  const refused = result.filter(({ status }) => status === 429).length;
  return under(`${readers} callers who take nothing of an answer of 60 MiB`, [
    judged("memory of all processes", peak),
    noted("answered, refused with 429", `${answered}, ${refused}`),
  ]);
}

const SPEC = { clauses: [{ kind: "json.jsonpath", path: "$[*].a" }] };

/** So many checks at once, each of a document of 10 MiB. */
async function largeChecks(server: RunningServer, secret: string, source: string, checks: number) {
  const send = async (path: string, key: string, body: object) => {
    const response = await fetch(`${server.url}${path}`, {
      method: "POST",
      headers: {
        Authorization: `Bearer ${secret}`,
        "Idempotency-Key": key,
        "Content-Type": "application/json",
      },
      body: JSON.stringify(body),
    });
    return { status: response.status, body: (await response.json()) as Record<string, unknown> };
  };
  const deadline = new Date(Date.now() + DAY_MS).toISOString();
  const opened = await Promise.all(
    Array.from({ length: checks }, (_, index) =>
      send("/v1/warrants", `open ${checks} ${index}`, { amount: "1", payee: "p", deadline, spec: SPEC }),
    ),
  );
  const verify = (id: unknown) =>
    send(`/v1/warrants/${id}/verify`, `verify ${id}`, { source_url: `${source}/objects.json` });
  const { peak, result } = await peakWhile(server, () =>
    Promise.all(opened.map(({ body }) => verify(body.id))),
  );
  const counts = new Map<number, number>();
  for (const { status } of result) counts.set(status, (counts.get(status) ?? 0) + 1);
  const answered = [...counts].map(([status, count]) => `${count} × ${status}`).join(", ");
  return under(`${checks} checks at once, of 10 MiB of small objects each`, [
    judged("memory of all processes", peak),
    atLeast("of them judged; the others may be tried again", counts.get(200) ?? 0, { required: 1 }, answered),
  ]);
}
