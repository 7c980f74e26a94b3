import ipaddr from "ipaddr.js";
import { parseAddress } from "../core/networks.ts";
import { SECOND_MS } from "../core/time.ts";
import { lacksDescriptor, withReserve } from "./descriptors.ts";
import { logFault } from "./log.ts";
import { type Sockets, systemSockets } from "./sockets.ts";

/**
 * Cuts off answers that are far longer on the wire than any content may be. Bun's fetch shows the content alone: interim
 * responses, extensions of chunks and trailers could go on until the request's time is over.
 */

/** More than twice the largest content, since small chunks take several bytes for one. */
const WIRE_BYTES_MAX = 24 * 1024 * 1024;
const EVERY_MS = 250;
/** A look at very many descriptors takes longer. It may use this part of the time, but never looks more seldom than the last figure says. */
const PART_OF_TIME = 50;
const EVERY_MS_MAX = SECOND_MS;

/** How many requests are under way to an address and port. */
const underWay = new Map<string, number>();
let isLooking = false;

/** Watches the connections to an address and port until the signal aborts. */
export function capWire(address: string, port: number, signal: AbortSignal): void {
  if (signal.aborted) return;
  const peer = `${asInPeer(address)} ${port}`;
  underWay.set(peer, (underWay.get(peer) ?? 0) + 1);
  const end = (): void => {
    const left = (underWay.get(peer) ?? 0) - 1;
    if (left > 0) underWay.set(peer, left);
    else underWay.delete(peer);
  };
  signal.addEventListener("abort", end, { once: true });
  if (!isLooking) lookAfter(EVERY_MS);
}

function lookAfter(waitMs: number): void {
  isLooking = true;
  setTimeout(() => {
    isLooking = underWay.size > 0;
    if (!isLooking) return;
    const startedAt = performance.now();
    const sockets = systemSockets();
    try {
      if (sockets) withReserve("this thread", () => cutLongAnswers(sockets));
    } catch (error) {
      // Nobody catches what a timer throws, and then nobody would look again. The next look may have the descriptor that it needs.
      if (!lacksDescriptor(error)) logFault("the length of answers could not be looked at", error);
    }
    const waitMs = (performance.now() - startedAt) * PART_OF_TIME;
    lookAfter(Math.min(Math.max(EVERY_MS, waitMs), EVERY_MS_MAX));
  }, waitMs).unref();
}

function cutLongAnswers(sockets: Sockets): void {
  const isWatched = (descriptor: number): boolean => {
    const peer = sockets.peerOf(descriptor);
    return peer !== null && underWay.has(`${peer.address} ${peer.port}`);
  };
  const isTooLong = (descriptor: number): boolean =>
    isWatched(descriptor) && sockets.bytesReceived(descriptor) > WIRE_BYTES_MAX;
  for (const descriptor of sockets.descriptors()) {
    if (!isTooLong(descriptor)) continue;
    // Another thread owns it, and may close it at any moment. The copy stays the same connection.
    const copy = sockets.duplicate(descriptor);
    if (copy === null) continue;
    if (isTooLong(copy)) sockets.shutDown(copy);
    sockets.close(copy);
  }
}

/** The address as `Peer` writes it. */
function asInPeer(text: string): string {
  const address = parseAddress(text);
  if (!(address instanceof ipaddr.IPv6)) return text;
  return address.isIPv4MappedAddress()
    ? address.toIPv4Address().toString()
    : address.parts.map((part) => part.toString(16)).join(":");
}
