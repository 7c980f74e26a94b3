import { type Correction, movedBy } from "../../core/correction.ts";
import type { Deposit } from "../../core/deposit.ts";
import { type Refusal, refuse } from "../../core/errors.ts";
import { isAboveThreshold, type Priced } from "../../core/passkey.ts";
import { type PayeeAccount, type Payout, totalsOf } from "../../core/payout.ts";
import type { Waiting } from "../../core/rail.ts";
import { ACCESS, type Caller, refuseAccess } from "../../core/roles.ts";
import type { OnChain } from "../../resources/payout.ts";
import type { Reader } from "../../store/reader.ts";
import { countedIn } from "../admin/balances.ts";
import { correctionNotFound } from "../admin/corrections.ts";
import { type Asked, readBatch } from "../admin/payout-batch.ts";
import type { Context } from "../context.ts";
import { firstOf, type More } from "../page-of-list.ts";
import { owedOn, payoutOn } from "../rails/shown.ts";

/** Pages of what is owed to payees, of payouts, and of corrections, in the caller's organisation and mode. */

const PAGE_SIZE = 25;

type Paged<Row> = { readonly rows: readonly Row[]; readonly more: More };

/** A payee with the rail of what is owed to it, and why it is owed. */
export type PayeeOnRail = PayeeAccount & { readonly rail: Payout["rail"]; readonly waiting: Waiting | null };
/** A payout with its transaction, and what it waits for. */
export type PayoutOnRail = Payout & OnChain;

/** What is owed to whom, in the order in which each payee was first paid. @param after the place of the last one; 0 for the first */
export async function readPayees(
  ctx: Context,
  caller: Caller,
  after: number,
): Promise<Paged<PayeeOnRail> | Refusal> {
  const refused = refuseAccess(caller, ACCESS.readConsole);
  if (refused) return refused;
  return ctx.store.read(async (reader) => {
    const found = await reader.payees.list(caller, after, PAGE_SIZE + 1);
    const { rows, more } = firstOf(found, PAGE_SIZE, ({ at }) => String(at));
    const shown = rows.map(async (row) => ({ ...row, ...(await owedOn(reader, caller, row)) }));
    return { rows: await Promise.all(shown), more };
  });
}

/** @param olderThan the id of the payout after which the page begins; null for the newest */
export async function readPayouts(
  ctx: Context,
  caller: Caller,
  status: Payout["status"] | null,
  olderThan: string | null,
): Promise<Paged<PayoutOnRail> | Refusal> {
  const refused = refuseAccess(caller, ACCESS.readConsole);
  if (refused) return refused;
  return ctx.store.read(async (reader) => {
    const found = await reader.payouts.list(caller, status, olderThan, PAGE_SIZE + 1);
    const { rows, more } = firstOf(found, PAGE_SIZE, ({ id }) => id);
    const shown = rows.map(async (row) => ({ ...row, ...(await payoutOn(reader, row)) }));
    return { rows: await Promise.all(shown), more };
  });
}

/** One payout of the caller's organisation and mode. */
export async function readPayout(ctx: Context, caller: Caller, id: string): Promise<Payout | Refusal> {
  const refused = refuseAccess(caller, ACCESS.readConsole);
  if (refused) return refused;
  const found = await ctx.store.read((reader) => reader.payouts.get(id));
  return found && isOf(caller, found) ? found : refuse("payout_not_found", `There is no payout ${id}.`);
}

/** @param olderThan the id of the correction after which the page begins; null for the newest */
export async function readCorrections(
  ctx: Context,
  caller: Caller,
  olderThan: string | null,
): Promise<Paged<Correction> | Refusal> {
  const refused = refuseAccess(caller, ACCESS.readConsole);
  if (refused) return refused;
  const found = await ctx.store.read((reader) => reader.corrections.list(caller, olderThan, PAGE_SIZE + 1));
  return firstOf(found, PAGE_SIZE, ({ id }) => id);
}

/** A correction, and whether its approval needs the signature of a passkey. */
export async function readCorrection(
  ctx: Context,
  caller: Caller,
  id: string,
): Promise<{ readonly correction: Correction; readonly needsPasskey: boolean } | Refusal> {
  const refused = refuseAccess(caller, ACCESS.readConsole);
  if (refused) return refused;
  return ctx.store.read(async (reader) => {
    const correction = await reader.corrections.get(id);
    const deposit = correction && (await reader.deposits.get(correction.depositId));
    return deposit && isOf(caller, correction)
      ? { correction, needsPasskey: await isAboveThresholdOf(reader, caller, movedBy(correction, deposit)) }
      : correctionNotFound(id);
  });
}

/** What a submission would pay out, how much it is together, and whether it needs the signature of a passkey. */
export async function readSubmission(
  ctx: Context,
  caller: Caller,
  asked: Asked & { readonly rail?: "book" | undefined },
) {
  const refused = refuseAccess(caller, ACCESS.administer);
  if (refused) return refused;
  return ctx.store.read(async (reader) => {
    const batch = await readBatch(reader, caller, asked);
    const totals = totalsOf(batch.payouts);
    const rails = await Promise.all(batch.payouts.map((one) => owedOn(reader, caller, one)));
    const isSent = rails.some(({ rail }) => rail === "evm") && asked.rail !== "book";
    const isAbove = await isAboveThresholdOf(reader, caller, totals);
    return { ...batch, totals, isSent, needsPasskey: isSent || isAbove };
  });
}

async function isAboveThresholdOf(reader: Reader, { organisationId }: Caller, moved: readonly Priced[]) {
  const organisation = await reader.organisations.get(organisationId);
  return moved.some((priced) => isAboveThreshold(organisation?.passkeyThreshold ?? null, priced));
}

/** A deposit, and what it counts for. */
export async function readCountedDeposit(
  ctx: Context,
  caller: Caller,
  id: string,
): Promise<{ readonly deposit: Deposit; readonly counted: bigint } | Refusal> {
  const refused = refuseAccess(caller, ACCESS.readConsole);
  if (refused) return refused;
  return ctx.store.read(async (reader) => {
    const deposit = await reader.deposits.get(id);
    if (!deposit || !isOf(caller, deposit)) return refuse("deposit_not_found", `There is no deposit ${id}.`);
    return { deposit, counted: await countedIn(reader, deposit) };
  });
}

const isOf = (caller: Caller, thing: Pick<Deposit, "organisationId" | "mode">): boolean =>
  caller.organisationId === thing.organisationId && caller.mode === thing.mode;
