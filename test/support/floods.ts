import { flood, type HostileSource, hostileSource } from "./hostile-source.ts";

/** Answers that never end, in which no byte is content: what they begin with, and what follows for ever. */
const FLOODS = {
  "interim responses": ["", "HTTP/1.1 100 Continue\r\n\r\n".repeat(2_000)],
  "long interim responses": ["", `HTTP/1.1 103 Early Hints\r\nLink: ${"a".repeat(4_000)}\r\n\r\n`.repeat(16)],
  "one extension of a chunk": ["HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;", "a".repeat(65_536)],
  "extensions of chunks": [
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
    `1;${"a".repeat(4_000)}\r\nx\r\n`.repeat(16),
  ],
  "one trailer": ["HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: ", "a".repeat(65_536)],
  trailers: [
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n",
    `X: ${"a".repeat(1_000)}\r\n`.repeat(64),
  ],
} as const satisfies Record<string, readonly [start: string, rest: string]>;

export type Flood = keyof typeof FLOODS;
export const FLOOD_NAMES = Object.keys(FLOODS) as Flood[];

export type FloodSource = HostileSource & {
  url(flood: Flood): string;
  /** How many bytes it has sent on all connections. */
  sentBytes(): number;
};

/** Floods whoever asks, with the flood that the path names. */
export async function floodSource(): Promise<FloodSource> {
  const sockets: { readonly bytesWritten: number }[] = [];
  const source = await hostileSource((socket, request) => {
    const [, path = ""] = request.split(" ");
    const [start, rest] = FLOODS[decodeURIComponent(path.slice(1)) as Flood];
    sockets.push(socket);
    socket.write(start);
    flood(socket, Buffer.from(rest));
  });
  return {
    ...source,
    url: (flood) => `http://127.0.0.1:${source.port}/${encodeURIComponent(flood)}`,
    sentBytes: () => sockets.reduce((sum, { bytesWritten }) => sum + bytesWritten, 0),
  };
}
