import { dlopen, ptr } from "bun:ffi";
import { readdirSync, statSync } from "node:fs";

/**
 * The sockets and descriptors of this process, by system calls: Bun shows no connection before its first request, and cannot
 * close one. Only on Linux with glibc; elsewhere `systemSockets` answers null.
 */
export type Sockets = {
  /** Every open descriptor. */
  descriptors(): number[];
  /** How many descriptors are open. */
  count(): number;
  /** The other end of a connection; null where the descriptor is not a connection. No two connections that are open at once have the same text. */
  peerOf(descriptor: number): Peer | null;
  localPortOf(descriptor: number): number | null;
  /** How many bytes a connection has received so far, with everything around the content. */
  bytesReceived(descriptor: number): number;
  /** Lets this many connections wait to be accepted at a listening socket. Another socket stays as it is. */
  setQueue(descriptor: number, connections: number): void;
  /** Ends a connection for both sides. Its owner sees that, and closes the descriptor. */
  shutDown(descriptor: number): void;
  /** A second descriptor of the same thing; null where none is free. */
  duplicate(descriptor: number): number | null;
  close(descriptor: number): void;
  /** Sets how many descriptors this process may have. It cannot go over the hard limit. */
  setLimit(descriptors: number, hard: number): boolean;
};

/** `address` is dotted for IPv4, also where it came over IPv6; else eight groups of hex digits. */
export type Peer = { readonly address: string; readonly port: number };

const AF_INET = 2;
const AF_INET6 = 10;
const SHUT_RDWR = 2;
const RLIMIT_NOFILE = 7;
const IPPROTO_TCP = 6;
const TCP_INFO = 11;
/** Where `struct tcp_info` has `tcpi_bytes_received`, since Linux 4.1. */
const BYTES_RECEIVED_AT = 128;
const ADDRESS_BYTES = 28;
const VALUE_BYTES = 256;
const MAPPED_PREFIX = "0:0:0:0:0:ffff:";
const DESCRIPTORS = "/proc/self/fd";

let loaded: Sockets | null | undefined;

export function systemSockets(): Sockets | null {
  if (loaded === undefined) {
    try {
      loaded = process.platform === "linux" ? loadSockets() : null;
    } catch {
      loaded = null;
    }
  }
  return loaded;
}

function loadSockets(): Sockets {
  const { symbols: libc } = dlopen("libc.so.6", {
    getpeername: { args: ["i32", "ptr", "ptr"], returns: "i32" },
    getsockname: { args: ["i32", "ptr", "ptr"], returns: "i32" },
    getsockopt: { args: ["i32", "i32", "i32", "ptr", "ptr"], returns: "i32" },
    listen: { args: ["i32", "i32"], returns: "i32" },
    shutdown: { args: ["i32", "i32"], returns: "i32" },
    dup: { args: ["i32"], returns: "i32" },
    close: { args: ["i32"], returns: "i32" },
    setrlimit: { args: ["i32", "ptr"], returns: "i32" },
  });
  // Used again for every call: nothing else runs between a call and the reading of its result. A buffer keeps its place in
  // memory, which a typed array that is made by itself does not.
  const memory = new ArrayBuffer(VALUE_BYTES + 4);
  const view = new DataView(memory);
  const bytes = new Uint8Array(memory);
  const valueAt = ptr(view);
  const lengthAt = valueAt + VALUE_BYTES;
  const setLength = (length: number): void => view.setUint32(VALUE_BYTES, length, true);

  const peer = (): Peer | null => {
    const family = view.getUint16(0, true);
    const port = view.getUint16(2);
    if (family === AF_INET) return { address: bytes.subarray(4, 8).join("."), port };
    if (family !== AF_INET6) return null;
    const groups = Array.from({ length: 8 }, (_, at) => view.getUint16(8 + 2 * at).toString(16)).join(":");
    return { address: groups.startsWith(MAPPED_PREFIX) ? bytes.subarray(20, 24).join(".") : groups, port };
  };
  return {
    // The descriptor that reads the folder is among them, and closed by now.
    descriptors: () => readdirSync(DESCRIPTORS).map(Number),
    // Older kernels than 6.2 give no size.
    count: () => statSync(DESCRIPTORS).size || readdirSync(DESCRIPTORS).length,
    peerOf(descriptor) {
      setLength(ADDRESS_BYTES);
      return libc.getpeername(descriptor, valueAt, lengthAt) === 0 ? peer() : null;
    },
    localPortOf(descriptor) {
      setLength(ADDRESS_BYTES);
      return libc.getsockname(descriptor, valueAt, lengthAt) === 0 ? (peer()?.port ?? null) : null;
    },
    bytesReceived(descriptor) {
      setLength(VALUE_BYTES);
      const found = libc.getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, valueAt, lengthAt) === 0;
      const isLongEnough = view.getUint32(VALUE_BYTES, true) >= BYTES_RECEIVED_AT + 8;
      return found && isLongEnough ? Number(view.getBigUint64(BYTES_RECEIVED_AT, true)) : 0;
    },
    setQueue: (descriptor, connections) => void libc.listen(descriptor, connections),
    shutDown: (descriptor) => void libc.shutdown(descriptor, SHUT_RDWR),
    duplicate(descriptor) {
      const copy = libc.dup(descriptor);
      return copy < 0 ? null : copy;
    },
    close: (descriptor) => void libc.close(descriptor),
    setLimit(descriptors, hard) {
      view.setBigUint64(0, BigInt(descriptors), true);
      view.setBigUint64(8, BigInt(hard), true);
      return libc.setrlimit(RLIMIT_NOFILE, valueAt) === 0;
    },
  };
}
