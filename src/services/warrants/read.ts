import { isRefusal, type Refusal } from "../../core/errors.ts";
import { ACCESS, type Caller, refuseAccess } from "../../core/roles.ts";
import { isSettled, type Warrant } from "../../core/warrant.ts";
import type { Context } from "../context.ts";
import { listResource, receiptResource, traceResource, warrantResource } from "../resources.ts";
import { warrantNotFound } from "./transition.ts";

function findWarrant(ctx: Context, caller: Caller, id: string): Warrant | Refusal {
  return (
    refuseAccess(caller, ACCESS.readWarrants) ??
    ctx.store.reader.warrants.get(caller, id) ??
    warrantNotFound()
  );
}

/** The warrant, or `warrant_not_found` where it is absent, another organisation's or of the other mode. */
export function readWarrant(ctx: Context, caller: Caller, id: string) {
  const warrant = findWarrant(ctx, caller, id);
  return isRefusal(warrant) ? warrant : warrantResource(warrant);
}

/** The trace entries in order of recording. */
export function readTrace(ctx: Context, caller: Caller, id: string) {
  const warrant = findWarrant(ctx, caller, id);
  return isRefusal(warrant)
    ? warrant
    : listResource(ctx.store.reader.trace.of(warrant.id).map(traceResource));
}

/** The public receipt of a settled warrant (decisions.md, Trace, log, receipts). Nobody's credentials are asked for. */
export function readReceipt(ctx: Context, id: string) {
  const { reader } = ctx.store;
  const warrant = reader.warrants.find(id);
  if (!warrant || !isSettled(warrant.state)) return warrantNotFound();
  return receiptResource(warrant, reader.checks.of(id), reader.trace.of(id));
}
