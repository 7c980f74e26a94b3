import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { createServer, type Server, type Socket } from "node:net";
import { createX402Client, type X402Client } from "../../src/platform/x402-request.ts";

/**
 * A name with two addresses. Where a connection to the first was made, the seller may have taken the payment, whatever happens
 * then: the second address must not be asked, and what it would have said must not count.
 */

const FIRST = "127.0.0.1";
const SECOND = "127.0.0.2";
const PAYMENT = { name: "X-PAYMENT", value: "signed" };
const OK = "HTTP/1.1 200 OK\r\ncontent-length: 5\r\nconnection: close\r\n\r\ngoods";

/** A listener, which counts the requests with a payment that have come to it. */
type Seller = { readonly server: Server; readonly port: number; payments: number };

async function listen(address: string, port: number, answer: (socket: Socket) => void): Promise<Seller> {
  const server = createServer((socket) => {
    socket.on("error", () => {});
    socket.on("data", (data) => {
      if (!/x-payment: signed/i.test(String(data))) return;
      seller.payments += 1;
      answer(socket);
    });
  });
  const seller: Seller = { server, port: 0, payments: 0 };
  await new Promise<void>((resolve) => server.listen(port, address, resolve));
  return Object.assign(seller, { port: (server.address() as { port: number }).port });
}

let client: X402Client;
let sellers: Seller[];
beforeEach(() => {
  sellers = [];
  client = createX402Client({
    allowNetworks: ["127.0.0.0/8"],
    payTimeoutMs: 500,
    resolve: async () => [FIRST, SECOND],
  });
});
afterEach(() => {
  for (const { server } of sellers) server.close();
});

const pay = () =>
  client.pay({ url: `http://two.example:${sellers[0]?.port}/`, method: "GET", headers: {} }, PAYMENT);

describe.each<[string, (socket: Socket) => void]>([
  ["resets the connection", (socket) => socket.resetAndDestroy()],
  ["closes the connection", (socket) => socket.destroy()],
  ["answers what is not HTTP", (socket) => socket.end("no\r\n\r\n")],
  ["breaks off in the headers", (socket) => socket.end("HTTP/1.1 200 OK\r\ncontent-")],
  ["does not answer", () => {}],
])("a first address that takes the payment and %s", (_, answer) => {
  test("may have been paid, and a second one that would answer is not paid", async () => {
    const first = await listen(FIRST, 0, answer);
    const second = await listen(SECOND, first.port, (socket) => socket.end(OK));
    sellers = [first, second];
    expect(await pay()).toMatchObject({ connected: true, evidence: { reached: false } });
    expect([first.payments, second.payments]).toEqual([1, 0]);
  });

  test("may have been paid, though nobody listens at the second", async () => {
    sellers = [await listen(FIRST, 0, answer)];
    expect(await pay()).toMatchObject({ connected: true, evidence: { reached: false } });
  });
});

test("a first address where nobody listens was not paid, and the second one is", async () => {
  sellers = [await listen(SECOND, 0, (socket) => socket.end(OK))];
  expect(await pay()).toMatchObject({ connected: true, evidence: { reached: true, status: 200 } });
  expect(sellers[0]?.payments).toBe(1);
});
