import { connect } from "node:net";

/**
 * Sends bytes unchanged over a socket of its own; fetch would correct or refuse them. Answers the response, read to its end,
 * also where it comes before all bytes were sent. `signal` closes the connection.
 */
export function rawRequest(
  url: string,
  head: readonly string[],
  chunks: readonly (string | Uint8Array)[] = [],
  signal?: AbortSignal,
): Promise<Response> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname);
    const received: Buffer[] = [];
    socket.on("connect", () => {
      socket.write(`${head.join("\r\n")}\r\nConnection: close\r\n\r\n`, "latin1");
      for (const chunk of chunks) socket.write(chunk);
    });
    socket.on("data", (data: Buffer) => {
      received.push(data);
      const response = responseOf(Buffer.concat(received));
      if (!response) return;
      socket.destroy();
      resolve(response);
    });
    socket.on("error", reject);
    signal?.addEventListener("abort", () => socket.destroy());
    socket.on("close", () => reject(new Error(`closed after ${Buffer.concat(received)}`)));
  });
}

/** The response in the bytes, once its body is whole; null until then. */
function responseOf(bytes: Buffer): Response | null {
  const end = bytes.indexOf("\r\n\r\n");
  if (end < 0) return null;
  const [status = "", ...fields] = bytes.subarray(0, end).toString("latin1").split("\r\n");
  const headers = new Headers(
    fields.map((field) => [field.slice(0, field.indexOf(":")), field.slice(field.indexOf(":") + 1).trim()]),
  );
  const body = bytes.subarray(end + 4);
  if (body.length < Number(headers.get("content-length") ?? 0)) return null;
  return new Response(body.toString(), { status: Number(status.split(" ")[1]), headers });
}

/** A body in chunks, as `Transfer-Encoding: chunked` sends them. */
export const chunked = (parts: readonly (string | Uint8Array)[]): readonly (string | Uint8Array)[] => [
  ...parts.flatMap((part) => [`${Buffer.byteLength(part).toString(16)}\r\n`, part, "\r\n"]),
  "0\r\n\r\n",
];
