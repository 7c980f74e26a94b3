import type { WebhookDelivery, WebhookEndpoint } from "../../core/webhook.ts";

/**
 * How many attempts may be under way in the process. They share its 256 connections with the fetches of
 * deliverables.
 */
const ALL_MAX = 128;
const OF_ENDPOINT_MAX = 8;
/** An endpoint whose last attempt took longer is slow. */
const QUICK_MS_MAX = 2_000;
/** How many endpoints are remembered as quick or slow. A forgotten one counts as new. */
const KNOWN_MAX = 10_000;

/** How fast an endpoint was at its last attempt; `new` where this process has made none. */
type Pace = "quick" | "new" | "slow";

/**
 * The parts of all slots for endpoints of each pace. An endpoint may begin its first attempt while less than
 * the part `first` is taken, and further attempts while less than `more` is taken. Only endpoints that are
 * known to be quick can use the last quarter.
 */
const PARTS = {
  quick: { first: 1, more: 3 / 4 },
  new: { first: 3 / 4, more: 3 / 8 },
  slow: { first: 1 / 2, more: 1 / 4 },
} as const satisfies Record<Pace, { first: number; more: number }>;

type Endpoint = Pick<WebhookEndpoint, "id" | "organisationId">;
type Attempt = { readonly webhookId: string; readonly organisationId: string };

/**
 * The attempts under way, in process memory. Endpoints that are not known to be quick share a part of the
 * slots, and one organisation never takes more of a part than it leaves to others. So any number of hanging
 * endpoints take only a few slots, and the others find a free one.
 */
export type DeliverySlots = {
  /**
   * How many more attempts to the endpoint may begin now. `again`: the endpoint has just freed a slot, and
   * others may be waiting for it.
   */
  free(endpoint: Endpoint, again?: boolean): number;
  /** The deliveries to the endpoint that have a slot, by id. */
  taken(webhookId: string): ReadonlySet<string>;
  /** Gives the delivery a slot until its attempt has ended. */
  hold(
    delivery: Pick<WebhookDelivery, "id" | "webhookId" | "organisationId">,
    attempt: Promise<unknown>,
  ): void;
  /** How long an attempt to the endpoint took, in milliseconds, whatever came of it. */
  took(webhookId: string, durationMs: number): void;
  /** The attempts that are under way now. */
  underWay(): readonly Promise<unknown>[];
  /** Allows no further attempt. Resolves when none is under way. */
  close(): Promise<void>;
};

const NONE: ReadonlySet<string> = new Set();

export function createDeliverySlots(allMax = ALL_MAX, ofEndpointMax = OF_ENDPOINT_MAX): DeliverySlots {
  const attempts = new Map<Promise<unknown>, Attempt>();
  const slots = new Map<string, Set<string>>();
  const paces = new Map<string, Exclude<Pace, "new">>();
  let closed = false;
  const taken = (webhookId: string): ReadonlySet<string> => slots.get(webhookId) ?? NONE;
  const paceOf = (webhookId: string): Pace => paces.get(webhookId) ?? "new";

  /**
   * How many attempts are in the endpoint's part of the slots (`all`), and how many of them have its pace and
   * its organisation (`own`).
   */
  function sharing({ id, organisationId }: Endpoint): { all: number; own: number } {
    const mine = paceOf(id);
    let all = 0;
    let own = 0;
    for (const attempt of attempts.values()) {
      const pace = paceOf(attempt.webhookId);
      if (mine === "quick" || pace !== "quick") all++;
      if (mine === pace && attempt.organisationId === organisationId) own++;
    }
    return { all, own };
  }

  return {
    taken,
    free(endpoint, again = false) {
      if (closed) return 0;
      const has = taken(endpoint.id).size;
      const part = PARTS[paceOf(endpoint.id)];
      const { all, own } = sharing(endpoint);
      const any = Math.min(allMax - attempts.size, ofEndpointMax - has);
      // Divided by two, since each new attempt raises both `all` and `own` by one.
      const room = (share: number): number =>
        Math.min(any, Math.ceil((Math.floor(allMax * share) - all - own) / 2));
      const first = has === 0 && !again ? Math.min(1, room(part.first)) : 0;
      const more = room(part.more);
      return Math.max(0, first, more);
    },
    hold({ id, webhookId, organisationId }, attempt) {
      const own = slots.get(webhookId) ?? new Set();
      slots.set(webhookId, own.add(id));
      attempts.set(attempt, { webhookId, organisationId });
      const leave = (): void => {
        attempts.delete(attempt);
        own.delete(id);
        if (own.size === 0) slots.delete(webhookId);
      };
      attempt.then(leave, leave);
    },
    took(webhookId, durationMs) {
      paces.delete(webhookId);
      paces.set(webhookId, durationMs <= QUICK_MS_MAX ? "quick" : "slow");
      const [oldest] = paces.keys();
      if (paces.size > KNOWN_MAX && oldest !== undefined) paces.delete(oldest);
    },
    underWay: () => [...attempts.keys()],
    async close() {
      closed = true;
      while (attempts.size > 0) await Promise.allSettled(attempts.keys());
    },
  };
}
