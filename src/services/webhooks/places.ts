import type { WebhookDelivery } from "../../core/webhook.ts";

/** Attempts under way in the process. What fetches deliverables shares the machine's 256 connections with them. */
const ALL_MAX = 128;
const OF_ENDPOINT_MAX = 8;

/**
 * The attempts under way, in process memory. An endpoint's first place comes from the whole, its others from the first half:
 * those that hang hold a few places each, and the rest find theirs.
 */
export type DeliveryPlaces = {
  /** How many more attempts to the endpoint may begin now. */
  free(webhookId: string): number;
  /** The deliveries to the endpoint that have a place, by id. */
  taken(webhookId: string): ReadonlySet<string>;
  /** Gives the delivery a place until its attempt has ended. */
  hold(delivery: Pick<WebhookDelivery, "id" | "webhookId">, attempt: Promise<unknown>): void;
  /** Where there is no room for others, an endpoint does not take again the place that it has just left. */
  roomy(): boolean;
  /** The attempts that are under way now. */
  underWay(): readonly Promise<unknown>[];
  /** Nothing more may begin. Resolves when nothing is under way. */
  close(): Promise<void>;
};

const NONE: ReadonlySet<string> = new Set();

export function createDeliveryPlaces(allMax = ALL_MAX, ofEndpointMax = OF_ENDPOINT_MAX): DeliveryPlaces {
  const attempts = new Set<Promise<unknown>>();
  const places = new Map<string, Set<string>>();
  let closed = false;
  const taken = (webhookId: string): ReadonlySet<string> => places.get(webhookId) ?? NONE;

  return {
    taken,
    free(webhookId) {
      if (closed || attempts.size >= allMax) return 0;
      const own = taken(webhookId).size;
      const first = own === 0 ? 1 : 0;
      const others = Math.min(ofEndpointMax - own, allMax / 2 - attempts.size) - first;
      return first + Math.max(0, others);
    },
    hold({ id, webhookId }, attempt) {
      const own = places.get(webhookId) ?? new Set();
      places.set(webhookId, own.add(id));
      attempts.add(attempt);
      const leave = (): void => {
        attempts.delete(attempt);
        own.delete(id);
        if (own.size === 0) places.delete(webhookId);
      };
      attempt.then(leave, leave);
    },
    roomy: () => attempts.size < allMax / 2,
    underWay: () => [...attempts],
    async close() {
      closed = true;
      while (attempts.size > 0) await Promise.allSettled(attempts);
    },
  };
}
