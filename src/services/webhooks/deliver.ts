import { SECOND_MS } from "../../core/time.ts";
import type { WebhookDelivery, WebhookEndpoint } from "../../core/webhook.ts";
import type { Context } from "../context.ts";
import {
  type Begun,
  beginDueAttempt,
  endBegunAttempt,
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
 * Begins the attempts that are due, as far as there are places, and resolves when they are begun. They end by themselves, each
 * making place for the endpoint's next, so that nothing waits for an endpoint but its own deliveries.
 */
export const beginDeliveries = (ctx: Context, onFault: OnDeliveryFault): Promise<void> =>
  beginAll(newRun(ctx, onFault, Number.POSITIVE_INFINITY));

/**
 * Attempts what is due, and says how its own attempts went. It also waits for those that others have under way, and for what
 * is due after them, so that what was due when it began has been attempted when it ends, but where there is very much of it.
 */
export async function runDeliveries(ctx: Context, onFault: OnDeliveryFault): Promise<DeliveryReport> {
  const run = newRun(ctx, onFault, ctx.now() + RUN_MS_MAX);
  let waitedFor = 0;
  do {
    await beginAll(run);
    waitedFor = run.work.size;
    while (run.work.size > 0) await Promise.all(run.work);
    const others = ctx.deliveryPlaces.underWay();
    waitedFor += others.length;
    await Promise.allSettled(others);
  } while (waitedFor > 0 && ctx.now() < run.until);
  return { ...run.tally, pending: ctx.store.reader.deliveries.waiting() };
}

async function beginAll(run: Run): Promise<void> {
  const { reader } = run.ctx.store;
  const now = run.ctx.now();
  const next = reader.deliveries.nextAttemptAt();
  if (next === null || next > now) return;
  const endpoints = reader.webhooks.withWork(now);
  // Each time another comes first: the last of very many would find no place.
  const first = random32(run.ctx) % Math.max(1, endpoints.length);
  const inTurn = [...endpoints.slice(first), ...endpoints.slice(0, first)];
  await Promise.all(inTurn.map((endpoint) => beginOf(run, endpoint)));
}

/** Four bytes: one alone would never begin beyond the 256th endpoint. */
const random32 = ({ randomByte }: Context): number =>
  Buffer.from(Array.from({ length: 4 }, randomByte)).readUInt32BE();

type Endpoint = Pick<WebhookEndpoint, "id" | "organisationId">;

/** Begins what is due to one endpoint, in the places that it has. */
async function beginOf(run: Run, endpoint: Endpoint, again = false): Promise<void> {
  const { deliveryPlaces: places, store, now: clock } = run.ctx;
  const free = places.free(endpoint, again);
  if (free === 0) return;
  const now = clock();
  const taken = places.taken(endpoint.id);
  const due = store.reader.deliveries.due(endpoint.id, now, free + taken.size);
  await Promise.all(
    due
      .filter(({ id }) => !taken.has(id))
      .slice(0, free)
      .map((delivery) => beginOne(run, delivery, now)),
  );
}

/** Gives one delivery its place. Resolves when the attempt is begun, or is another's. */
async function beginOne(run: Run, delivery: WebhookDelivery, now: number): Promise<void> {
  const { ctx, work, onFault } = run;
  const begun = beginDueAttempt(ctx, delivery, now);
  const attempt = begun.then((one) => one && carryOut(run, one));
  ctx.deliveryPlaces.hold(delivery, attempt);
  const whole = begun
    .then(
      () => attempt.then(() => goOn(run, delivery)).catch((error) => onFault(error, delivery.id)),
      // The ledger fails: nothing is begun, and the run says so.
      () => {},
    )
    .finally(() => work.delete(whole));
  work.add(whole);
  await begun;
}

async function carryOut(run: Run, begun: Begun): Promise<void> {
  const { ctx, tally, onFault } = run;
  tally.attempted++;
  const result = await sendAttempt(ctx, begun, onFault);
  if (result?.durationMs != null) ctx.deliveryPlaces.took(begun.endpoint.id, result.durationMs);
  const ended = await endBegunAttempt(ctx, begun, result);
  if (ended && ended.status !== "pending") tally[ended.status]++;
}

/** The place is free again: the endpoint's next delivery has it, where nobody else waits for one. */
async function goOn(run: Run, { webhookId, organisationId }: WebhookDelivery): Promise<void> {
  if (run.ctx.now() < run.until) await beginOf(run, { id: webhookId, organisationId }, true);
}
