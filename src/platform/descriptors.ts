import { readFileSync } from "node:fs";
import { codeOf } from "./certificates.ts";
import { type Sockets, systemSockets } from "./sockets.ts";

/** How many descriptors connections of strangers leave free, always, for the ledger, webhooks, fetches and children. */
export const SPARE_DESCRIPTORS = 64;
/** As many connections can come at once, between a look and the opening that it was for. */
const BURST = 512;
/** How long the opening by another thread is waited for. */
const OPENED_MS_MAX = 25;
const OPENED_STEP_MS = 0.1;

/** How many descriptors this process may have at most; null where the system does not say. */
export function descriptorLimit(): number | null {
  try {
    const limits = withReserve("this thread", () => readFileSync("/proc/self/limits", "utf8"));
    const [, soft, hard] = /^Max open files\s+(\d+)\s+(\d+)/m.exec(limits) ?? [];
    // Bun raises the first to the second at its start. Where it did not, `holdReserve` does.
    return soft === undefined || hard === undefined ? null : Math.max(Number(soft), Number(hard));
  } catch {
    return null;
  }
}

type Held = { readonly sockets: Sockets; readonly limit: number };
/** The limit belongs to the process, and so does this. */
let held: Held | null = null;

/**
 * Takes the last descriptors out of reach of everything that does not ask for them by `withReserve`: accepting connections
 * asks nobody, and would take them all. Answers how to give them back.
 */
export function holdReserve(limit: number): () => void {
  const sockets = systemSockets();
  if (!sockets?.setLimit(limit - SPARE_DESCRIPTORS, limit)) return () => {};
  held = { sockets, limit };
  return () => {
    held = null;
    sockets.setLimit(limit, limit);
  };
}

/**
 * Runs what opens descriptors, such as a child's start or a fetch. Where few are free it may use the reserve. Connections are
 * accepted by this thread, so none can take what is put within reach here.
 *
 * @param opener the thread that opens. Another one is waited for, for some milliseconds at most.
 */
export function withReserve<Opened>(opener: "this thread" | "another", open: () => Opened): Opened {
  if (held === null) return open();
  const { sockets, limit } = held;
  const free = lowestFree(sockets);
  if (free !== null && free < limit - SPARE_DESCRIPTORS - BURST) return open();
  sockets.setLimit(limit, limit);
  try {
    const before = lowestFree(sockets);
    const opened = open();
    if (opener === "another") waitUntilTaken(sockets, before);
    return opened;
  } finally {
    sockets.setLimit(limit - SPARE_DESCRIPTORS, limit);
  }
}

/** Whether something failed since no descriptor was free, in this process or on this machine. */
export const lacksDescriptor = (error: unknown): boolean => ["EMFILE", "ENFILE"].includes(codeOf(error));

/**
 * Starts the thread that fetches. Its first fetch would end the whole process if it had no descriptors for it. This one finds
 * nothing, and needs no network.
 */
export async function startFetching(): Promise<void> {
  await fetch("http://localhost/", { unix: "/nowhere/holdfast" }).catch(() => {});
}

/** The lowest free descriptor, which is the one that the system gives next; null where none is free. */
function lowestFree(sockets: Sockets): number | null {
  const free = sockets.duplicate(2);
  if (free !== null) sockets.close(free);
  return free;
}

function waitUntilTaken(sockets: Sockets, before: number | null): void {
  const until = performance.now() + OPENED_MS_MAX;
  let lowest = before;
  while (lowest !== null && performance.now() < until) {
    const now = lowestFree(sockets);
    if (now === null || now > lowest) return;
    // A lower one means that something was closed meanwhile.
    lowest = now;
    Bun.sleepSync(OPENED_STEP_MS);
  }
}
