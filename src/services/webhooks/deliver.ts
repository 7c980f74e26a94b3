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

/**
 * How long a run begins new attempts, where somebody waits for its end. Each attempt may take ten seconds
 * more.
 */
const RUN_MS_MAX = 5 * SECOND_MS;

/** What a run did: the attempts that it made, by their outcome, and how many deliveries still wait. */
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
  /** The time, in epoch milliseconds, after which the run begins no more attempts. */
  readonly until: number;
  readonly tally: Record<Exclude<keyof DeliveryReport, "pending">, number>;
  /** The run's attempts that are under way, each with the attempts that follow it. */
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
 * Starts the attempts that are due, as far as there are slots, and resolves when they are claimed; nobody
 * waits for their end. A finished attempt passes its slot to the same endpoint's next delivery, so a slow
 * endpoint delays only its own deliveries.
 */
export const claimDeliveries = (ctx: Context, onFault: OnDeliveryFault): Promise<void> =>
  claimAll(newRun(ctx, onFault, Number.POSITIVE_INFINITY));

/**
 * Makes the attempts that are due, and reports how they went. It also waits for attempts that others have
 * under way, and for deliveries that become due after them. So what was due at the beginning has been
 * attempted at the end, unless that was too much for one run.
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
  // Each run begins with another endpoint, chosen at random. Otherwise the last of very many would never find
  // a slot.
  const first = random32(run.ctx) % endpoints.length;
  const inTurn = [...endpoints.slice(first), ...endpoints.slice(0, first)];
  const claims: Promise<void>[] = [];
  const faults: unknown[] = [];
  // The endpoints come one after the other, so that nothing more is read once all slots are taken.
  for (const endpoint of inTurn) {
    for (const claim of await claimOf(run, endpoint)) {
      claims.push(claim.catch((error: unknown) => void faults.push(error)));
    }
  }
  await Promise.all(claims);
  if (faults.length > 0) throw faults[0];
}

/** A random number of 32 bits. One byte could choose only among the first 256 endpoints. */
const random32 = ({ randomByte }: Context): number =>
  Buffer.from(Array.from({ length: 4 }, randomByte)).readUInt32BE();

type Endpoint = Pick<WebhookEndpoint, "id" | "organisationId">;

/**
 * Gives slots to the deliveries that are due to one endpoint, and begins their claims. It resolves when the
 * slots are taken; each promise in its answer resolves when an attempt is claimed.
 */
async function claimOf(run: Run, endpoint: Endpoint, again = false): Promise<readonly Promise<void>[]> {
  const { deliverySlots: slots, store, now, instances } = run.ctx;
  // Its slots are counted in one process: so at most eight attempts are under way, and they keep their order.
  if (!instances.isMine(endpoint.id)) return [];
  const wanted = slots.free(endpoint, again);
  if (wanted === 0) return [];
  const rowsMax = wanted + slots.taken(endpoint.id).size;
  const due = await store.read((reader) => reader.deliveries.due(endpoint.id, now(), rowsMax));
  // Others may have taken slots during the read. From here on nothing is awaited until the slots are taken.
  const taken = slots.taken(endpoint.id);
  return due
    .filter(({ id }) => !taken.has(id))
    .slice(0, slots.free(endpoint, again))
    .map((delivery) => claimOne(run, delivery));
}

/** Takes a slot for one delivery. Resolves when its attempt is claimed, by this run or by another. */
async function claimOne(run: Run, delivery: WebhookDelivery): Promise<void> {
  const { ctx, work, onFault } = run;
  const claimed = claimDueAttempt(ctx, delivery);
  const attempt = claimed.then((one) => one && carryOut(run, one));
  ctx.deliverySlots.hold(delivery, attempt);
  const whole = claimed
    .then(
      () => attempt.then(() => goOn(run, delivery)).catch((error) => onFault(error, delivery.id)),
      // The claim failed, so there is no attempt. The error reaches the caller by `claimed`.
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

/** Uses the free slot for the same endpoint's next delivery, unless another endpoint needs it. */
async function goOn(run: Run, { webhookId, organisationId }: WebhookDelivery): Promise<void> {
  if (run.ctx.now() >= run.until) return;
  await Promise.all(await claimOf(run, { id: webhookId, organisationId }, true));
}
