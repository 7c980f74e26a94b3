import { parentPort, workerData } from "node:worker_threads";
import { auditFolder } from "./audit.ts";
import type { ThreadInput, ThreadMessage } from "./audit-threads.ts";

/** The whole program of a thread that audits one share of a ledger: see `audit-threads.ts`. */

const { dataFolder, ...options } = workerData as ThreadInput;
const send = (message: ThreadMessage): void => parentPort?.postMessage(message);

send({ found: auditFolder(dataFolder, { ...options, onProgress: (done, total) => send({ done, total }) }) });
