import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** How a request is answered. `dropped` closes its connection without an answer, `never` leaves it open without one. */
export type Answer = Response | "dropped" | "never";
export type Answering = (request: Request) => Promise<Answer> | Answer;

export type Listener = {
  readonly url: string;
  /** Resolves when one more request than so far was left without an answer. */
  leavesOne(): Promise<void>;
  close(): Promise<void>;
};

/** An HTTP server on 127.0.0.1 and a free port, which can also do what a broken one does. */
export async function listen(answering: Answering): Promise<Listener> {
  const waiting: (() => void)[] = [];
  const server = createServer((incoming, outgoing) => {
    respond(answering, incoming, outgoing).then(
      (answer) => {
        if (answer === "never") for (const resolve of waiting.splice(0)) resolve();
      },
      (error) => {
        console.error(error);
        incoming.socket.destroy();
      },
    );
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    leavesOne: () => new Promise((resolve) => waiting.push(resolve)),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

async function respond(
  answering: Answering,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
): Promise<Answer> {
  const chunks: Buffer[] = [];
  for await (const chunk of incoming) chunks.push(chunk);
  const { method = "GET", url = "/", headers } = incoming;
  const answer = await answering(
    new Request(`http://${headers.host}${url}`, {
      method,
      headers: headers as Record<string, string>,
      ...(method === "GET" || method === "HEAD" ? {} : { body: Buffer.concat(chunks) }),
    }),
  );
  if (answer === "dropped") incoming.socket.destroy();
  else if (answer !== "never") {
    const body = Buffer.from(await answer.arrayBuffer());
    outgoing.writeHead(answer.status, Object.fromEntries(answer.headers));
    outgoing.end(body);
  }
  return answer;
}
