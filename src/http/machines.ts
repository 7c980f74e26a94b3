import { timingSafeEqual } from "node:crypto";
import { sha256 } from "../core/canonical.ts";
import { type Refusal, refuse } from "../core/errors.ts";

/** Programs that call with a secret which the operator shares with them, each on a route of its own. */
export const MACHINES = {
  /** Starts jobs. */
  worker: {
    header: "X-Service-Worker",
    about: "The operator's worker.",
    unset: refuse("worker_secret_unset", "HOLDFAST_WORKER_SECRET is not set: this route is closed."),
    wrong: refuse("invalid_worker_secret", "Send the worker's secret as X-Service-Worker."),
  },
  /** The bot API, which posts what people write to the bot. */
  messaging: {
    header: "X-Telegram-Bot-Api-Secret-Token",
    about: "The bot API.",
    unset: refuse("messaging_webhook_unset", "HOLDFAST_MESSAGING_SECRET is not set: this webhook is closed."),
    wrong: refuse(
      "messaging_webhook_unauthenticated",
      "Send the webhook's secret as X-Telegram-Bot-Api-Secret-Token.",
    ),
  },
} as const satisfies Record<string, { header: string; about: string; unset: Refusal; wrong: Refusal }>;
export type Machine = keyof typeof MACHINES;

/** The SHA-256 of each machine's secret; null where none is configured, so that its route is closed. */
export type SecretHashes = Readonly<Record<Machine, string | null>>;

export const NO_SECRET_HASHES: SecretHashes = { worker: null, messaging: null };

/**
 * Whether a request has the machine's secret. Their hashes are compared, in constant time, since these always
 * have the same length. Without a configured secret nobody is that machine.
 */
export function isMachine(machine: Machine, headers: Headers, hashes: SecretHashes): boolean {
  const sent = headers.get(MACHINES[machine].header);
  const hash = hashes[machine];
  return sent !== null && hash !== null && timingSafeEqual(Buffer.from(sha256(sent)), Buffer.from(hash));
}

/** The refusal for everybody who is not the machine. */
export const refuseStranger = (machine: Machine, hashes: SecretHashes): Refusal =>
  hashes[machine] === null ? MACHINES[machine].unset : MACHINES[machine].wrong;
