import type { WebhookDelivery, WebhookEndpoint } from "../../core/webhook.ts";

/** Attempts under way in the process. What fetches deliverables shares the machine's 256 connections with them. */
const ALL_MAX = 128;
const OF_ENDPOINT_MAX = 8;
/** An endpoint whose last attempt took longer is slow. */
const QUICK_MS_MAX = 2_000;
/** Endpoints that are remembered as quick or slow. One that is forgotten is new again. */
const KNOWN_MAX = 10_000;

/** What the last attempt said of an endpoint; new where there was none in this process. */
type Pace = "quick" | "new" | "slow";

/**
 * The part of all slots that endpoints of a pace may fill: an endpoint begins its first attempt while less than `first` is
 * taken, and more attempts while less than `more` is. The last quarter is kept for endpoints that are known to be quick.
 */
const PARTS = {
  quick: { first: 1, more: 3 / 4 },
  new: { first: 3 / 4, more: 3 / 8 },
  slow: { first: 1 / 2, more: 1 / 4 },
} as const satisfies Record<Pace, { first: number; more: number }>;

type Endpoint = Pick<WebhookEndpoint, "id" | "organisationId">;
type Attempt = { readonly webhookId: string; readonly organisationId: string };

/**
 * The attempts under way, in process memory. Endpoints that are not known to be quick share a part of the slots, and an
 * organisation never takes more of a part than it leaves to the others. So endpoints that hang take a few slots, however
 * many they are, and the others find a free one.
 */
export type DeliverySlots = {
  /** How many more attempts to the endpoint may begin now. `again`: it has just left a slot, and others may wait for it. */
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
  /** Nothing more may begin. Resolves when nothing is under way. */
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

  /** How many attempts fill the endpoint's part of the slots, and how many of them are of its own pace and organisation. */
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
      // Each that begins is one more of all, and one more of the organisation's own.
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
