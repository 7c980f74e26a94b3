import { canonicalJson } from "../../core/canonical.ts";
import { checkResource } from "../../core/check.ts";
import { isRefusal, type Refusal } from "../../core/errors.ts";
import { RECEIPT_TYPE } from "../../core/receipt/signature.ts";
import { ACCESS, type Caller, refuseAccess } from "../../core/roles.ts";
import { isSettled, type Warrant, warrantNotFound } from "../../core/warrant.ts";
import { listResource } from "../../resources/list.ts";
import { unsignedReceipt } from "../../resources/receipt.ts";
import { traceEntryResource } from "../../resources/trace-entry.ts";
import { warrantResource } from "../../resources/warrant.ts";
import type { Reader } from "../../store/reader.ts";
import type { Context } from "../context.ts";
import { readAnchor, readPlaces } from "../log/read.ts";
import { sayOtherModeOf } from "../other-mode.ts";

async function findWarrant(reader: Reader, caller: Caller, id: string): Promise<Warrant | Refusal> {
  return (
    refuseAccess(caller, ACCESS.readWarrants) ??
    (await reader.warrants.get(caller, id)) ??
    refuseMissing(reader, caller, id)
  );
}

/**
 * A person reads everything from one snapshot, and the shell explains every 404 from that. A key's request holds none, which
 * would cost more than its read, so what its 404 says is read here, with the rest.
 */
const refuseMissing = (reader: Reader, caller: Caller, id: string): Refusal | Promise<Refusal> =>
  caller.kind === "key"
    ? sayOtherModeOf(reader, caller, warrantNotFound(), [{ noun: "warrant", id }])
    : warrantNotFound();

/**
 * The warrant. Refused with `warrant_not_found` where it does not exist in the caller's organisation and
 * mode.
 */
export async function readWarrant(ctx: Context, caller: Caller, id: string) {
  const warrant = await ctx.store.read((reader) => findWarrant(reader, caller, id));
  return isRefusal(warrant) ? warrant : warrantResource(warrant);
}

/** The version of a warrant, named by its own id or by that of its escalation; null where there is none. */
export const versionNow = (ctx: Context, caller: Caller, id: string): Promise<number | null> =>
  ctx.store.read(async ({ escalations, warrants }) => {
    const escalation = await escalations.get(id);
    return (await warrants.get(caller, escalation?.warrantId ?? id))?.version ?? null;
  });

/** The trace entries in order of recording. */
export function readTrace(ctx: Context, caller: Caller, id: string) {
  return ctx.store.read(async (reader) => {
    const warrant = await findWarrant(reader, caller, id);
    if (isRefusal(warrant)) return warrant;
    const { chainRefs } = await readPlaces(ctx, reader, warrant.id);
    const trace = await reader.trace.of(warrant.id);
    return listResource(trace.map((entry, index) => traceEntryResource(entry, chainRefs[index] ?? null)));
  });
}

/** The checks of a warrant, newest first, each with its source and what was observed. */
export function readChecks(ctx: Context, caller: Caller, id: string) {
  return ctx.store.read(async (reader) => {
    const warrant = await findWarrant(reader, caller, id);
    return isRefusal(warrant)
      ? warrant
      : listResource((await reader.checks.of(warrant.id)).toReversed().map(checkResource));
  });
}

/** The public receipt of a settled warrant, signed over its RFC 8785 form. It needs no credentials. */
export async function readReceipt(ctx: Context, id: string) {
  const settled = await readSettled(ctx, id);
  if (isRefusal(settled)) return settled;
  const { warrant, checks, trace, logged, isCopy } = settled;
  // Who hides its specs reads no receipt with one from then on.
  const organisation = isCopy
    ? await ctx.store.read(({ organisations }) => organisations.get(warrant.organisationId))
    : settled.organisation;
  if (!organisation) throw new Error(`the warrant ${id} belongs to no organisation`);
  const receipt = unsignedReceipt(warrant, checks, trace, organisation, logged);
  return { ...receipt, signature: await ctx.tokens.sign(canonicalJson(receipt), RECEIPT_TYPE) };
}

/** What a receipt shows. None of it changes, and all of it is there once the log has the last entry. */
const readSettled = (ctx: Context, id: string) =>
  ctx.store.read(
    async (reader, isCopy) => {
      const { warrants, checks, organisations, trace } = reader;
      const warrant = await warrants.find(id);
      if (!warrant || !isSettled(warrant.state)) return warrantNotFound();
      const { places, chainRefs } = await readPlaces(ctx, reader, id);
      const settling = places.at(-1);
      const anchor = settling ? await readAnchor(ctx, reader, settling) : null;
      const logged = { chainRefs, anchor };
      const organisation = await organisations.get(warrant.organisationId);
      return {
        ...{ isCopy, warrant, organisation, logged },
        ...{ checks: await checks.of(id), trace: await trace.of(id) },
      };
    },
    { suffices: (settled) => !isRefusal(settled) && settled.logged.anchor !== null },
  );
