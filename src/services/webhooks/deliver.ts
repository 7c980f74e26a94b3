import { SECOND_MS } from "../../core/time.ts";
import type { WebhookDelivery, WebhookEndpoint } from "../../core/webhook.ts";
import type { Context } from "../context.ts";
import {
  type Claimed,
  claimDueAttempt,
  endClaimedAttempt,
  type OnDeliveryFault,
  sendAttempt,
} from "./attempt.ts";

/** How long a run that is waited for goes on beginning attempts. Each may take ten seconds more. */
const RUN_MS_MAX = 5 * SECOND_MS;

/** What a run did: attempts that it began, by how they ended, and how many deliveries are not over. */
export type DeliveryReport = {
  readonly attempted: number;
  readonly delivered: number;
  readonly failed: number;
  readonly exhausted: number;
  readonly pending: number;
};

type Run = {
  readonly ctx: Context;
  readonly onFault: OnDeliveryFault;
  /** Epoch milliseconds; after it the run takes up nothing new. */
  readonly until: number;
  readonly tally: Record<Exclude<keyof DeliveryReport, "pending">, number>;
  /** Its attempts under way, and what each leads on to. */
  readonly work: Set<Promise<void>>;
};

const newRun = (ctx: Context, onFault: OnDeliveryFault, until: number): Run => ({
  ctx,
  onFault,
  until,
  tally: { attempted: 0, delivered: 0, failed: 0, exhausted: 0 },
  work: new Set(),
});

/**
 * Claims and starts the attempts that are due, as far as there are slots, and resolves when they are claimed. They end by
 * themselves. Each leaves its slot to the endpoint's next delivery, so that only an endpoint's own deliveries wait for it.
 */
export const claimDeliveries = (ctx: Context, onFault: OnDeliveryFault): Promise<void> =>
  claimAll(newRun(ctx, onFault, Number.POSITIVE_INFINITY));

/**
 * Attempts what is due, and says how its own attempts went. It also waits for those that others have under way, and for what
 * is due after them, so that what was due when it began has been attempted when it ends, but where there is very much of it.
 */
export async function runDeliveries(ctx: Context, onFault: OnDeliveryFault): Promise<DeliveryReport> {
  const run = newRun(ctx, onFault, ctx.now() + RUN_MS_MAX);
  let waitedFor = 0;
  do {
    await claimAll(run);
    waitedFor = run.work.size;
    while (run.work.size > 0) await Promise.all(run.work);
    const others = ctx.deliverySlots.underWay();
    waitedFor += others.length;
    await Promise.allSettled(others);
  } while (waitedFor > 0 && ctx.now() < run.until);
  return { ...run.tally, pending: await ctx.store.read((reader) => reader.deliveries.waiting()) };
}

async function claimAll(run: Run): Promise<void> {
  const { store, now: clock } = run.ctx;
  const now = clock();
  const endpoints = await store.read(async ({ deliveries, webhooks }) => {
    const next = await deliveries.nextAttemptAt();
    return next === null || next > now ? [] : webhooks.withWork(now);
  });
  if (endpoints.length === 0) return;
  // Another comes first each time: otherwise the last of very many would never find a slot.
  const first = random32(run.ctx) % endpoints.length;
  const inTurn = [...endpoints.slice(first), ...endpoints.slice(0, first)];
  const claims: Promise<void>[] = [];
  const faults: unknown[] = [];
  // One after the other: once the slots are taken, nothing more is read.
  for (const endpoint of inTurn) {
    for (const claim of await claimOf(run, endpoint)) {
      claims.push(claim.catch((error: unknown) => void faults.push(error)));
    }
  }
  await Promise.all(claims);
  if (faults.length > 0) throw faults[0];
}

/** Four bytes: one alone would never reach beyond the 256th endpoint. */
const random32 = ({ randomByte }: Context): number =>
  Buffer.from(Array.from({ length: 4 }, randomByte)).readUInt32BE();

type Endpoint = Pick<WebhookEndpoint, "id" | "organisationId">;

/**
 * Claims what is due to one endpoint, in the slots that it may have. Resolves when each delivery has its slot; the promises
 * that it gives resolve when the attempts are claimed.
 */
async function claimOf(run: Run, endpoint: Endpoint, again = false): Promise<readonly Promise<void>[]> {
  const { deliverySlots: slots, store, now } = run.ctx;
  const wanted = slots.free(endpoint, again);
  if (wanted === 0) return [];
  const rowsMax = wanted + slots.taken(endpoint.id).size;
  const due = await store.read((reader) => reader.deliveries.due(endpoint.id, now(), rowsMax));
  // Others may have taken slots during the read. From here on nothing is waited for until the slots are held.
  const taken = slots.taken(endpoint.id);
  return due
    .filter(({ id }) => !taken.has(id))
    .slice(0, slots.free(endpoint, again))
    .map((delivery) => claimOne(run, delivery));
}

/** Gives one delivery its slot. Resolves when the attempt is claimed, or is another's. */
async function claimOne(run: Run, delivery: WebhookDelivery): Promise<void> {
  const { ctx, work, onFault } = run;
  const claimed = claimDueAttempt(ctx, delivery);
  const attempt = claimed.then((one) => one && carryOut(run, one));
  ctx.deliverySlots.hold(delivery, attempt);
  const whole = claimed
    .then(
      () => attempt.then(() => goOn(run, delivery)).catch((error) => onFault(error, delivery.id)),
      // The ledger failed: nothing was claimed, and whoever waits for `claimed` hears of it.
      () => {},
    )
    .finally(() => work.delete(whole));
  work.add(whole);
  await claimed;
}

async function carryOut(run: Run, claimed: Claimed): Promise<void> {
  const { ctx, tally, onFault } = run;
  tally.attempted++;
  const result = await sendAttempt(ctx, claimed, onFault);
  if (result?.durationMs != null) ctx.deliverySlots.took(claimed.endpoint.id, result.durationMs);
  const ended = await endClaimedAttempt(ctx, claimed, result);
  if (ended && ended.status !== "pending") tally[ended.status]++;
}

/** The slot is free again: the endpoint's next delivery takes it, where nobody else waits for one. */
async function goOn(run: Run, { webhookId, organisationId }: WebhookDelivery): Promise<void> {
  if (run.ctx.now() >= run.until) return;
  await Promise.all(await claimOf(run, { id: webhookId, organisationId }, true));
}
