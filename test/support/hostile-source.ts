import { createServer, type Server, type Socket } from "node:net";
import { createServer as createTlsServer } from "node:tls";
import { CERTIFICATE, PRIVATE_KEY } from "./tls.ts";

/** A source that answers each connection as it likes, byte by byte. */
export type HostileSource = { readonly port: number; readonly requests: string[]; close(): void };

/** Listens on a port of 127.0.0.1. `answer` gets the socket once the first bytes of a request have come. */
export function hostileSource(
  answer: (socket: Socket, request: string) => void,
  { tls = false } = {},
): Promise<HostileSource> {
  const requests: string[] = [];
  const sockets = new Set<Socket>();
  const accept = (socket: Socket): void => {
    sockets.add(socket);
    socket.on("error", () => {});
    socket.on("close", () => sockets.delete(socket));
    socket.once("data", (data) => {
      requests.push(String(data));
      answer(socket, String(data));
    });
  };
  const server: Server = tls
    ? createTlsServer({ key: PRIVATE_KEY, cert: CERTIFICATE }, accept)
    : createServer(accept);
  const close = (): void => {
    server.close();
    for (const socket of sockets) socket.destroy();
  };
  return new Promise((resolve) => {
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      if (address === null || typeof address === "string") throw new Error("no port");
      resolve({ port: address.port, requests, close });
    });
  });
}

/** Answers with a status, headers (each with its line end) and a body, and closes. */
export const respond =
  (status: string, headers = "", body: string | Uint8Array = "") =>
  (socket: Socket): void => {
    socket.write(`HTTP/1.1 ${status}\r\n${headers}\r\n`);
    socket.end(body);
  };

/** Writes as fast as the other side reads, for ever. */
export function flood(socket: Socket, chunk: Uint8Array): void {
  const write = (): void => {
    while (!socket.destroyed && socket.write(chunk));
  };
  socket.on("drain", write);
  write();
}

/** Writes a little, again and again, so that there is never a long pause. */
export function drip(socket: Socket, text: string): void {
  const timer = setInterval(() => socket.write(text), 20);
  socket.on("close", () => clearInterval(timer));
}
