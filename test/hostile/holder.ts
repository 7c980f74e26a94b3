/**
 * A stranger who takes every connection that there is, and keeps it: asks for /healthz once on each, and comes back at once
 * where it is closed. Its arguments are the port, the address that it comes from and how many connections it wants. It prints
 * each second how many it has been answered on and still holds.
 */
import { connect } from "node:net";

const [port, localAddress, wanted] = process.argv.slice(2);
const REQUEST = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";
/** It asks again before the server finds the connection idle. */
const ASK_AGAIN_MS = 5_000;
/** A refusal is answered at once, so a stranger who did not wait at all would only keep itself busy. */
const AGAIN_MS = 20;

let held = 0;

function hold(): void {
  const socket = connect({ port: Number(port), host: "127.0.0.1", localAddress });
  let isHeld = false;
  const ask = () => socket.write(REQUEST);
  const again = setInterval(ask, ASK_AGAIN_MS);
  socket.on("connect", ask);
  socket.on("data", () => {
    held += isHeld ? 0 : 1;
    isHeld = true;
  });
  socket.on("error", () => {});
  socket.on("close", () => {
    clearInterval(again);
    held -= isHeld ? 1 : 0;
    setTimeout(hold, AGAIN_MS);
  });
}

for (let at = 0; at < Number(wanted); at++) hold();
setInterval(() => console.log(held), 1_000);
