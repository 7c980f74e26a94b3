import { type Refusal, refuseField } from "../../core/errors.ts";
import type { Wire } from "../../core/form.ts";
import { ACCESS, type Caller, refuseAccess } from "../../core/roles.ts";
import { type listQuery, OFFSET_MAX, warrantListResource } from "../../resources/warrant.ts";
import type { Reader, WarrantFilter } from "../../store/reader.ts";
import type { Context } from "../context.ts";

/** The query of `GET /v1/warrants`, its values already in range (docs/idempotency, "Lists"). */
export type ListInput = Wire<typeof listQuery>;

const PAGE_DEFAULT = 25;

/** A page of warrants: by offset under `sort=deadline`, by cursor under `sort=created`. */
export async function listWarrants(ctx: Context, caller: Caller, input: ListInput) {
  const refused = refuseAccess(caller, ACCESS.readWarrants);
  if (refused) return refused;
  const filter: WarrantFilter = {
    ...(input.state !== undefined && { state: input.state }),
    ...(input.agent_id !== undefined && { agentId: input.agent_id }),
  };
  return ctx.store.read(async (reader) =>
    input.sort === "created"
      ? await listByCreation(reader, caller, filter, input)
      : await listByDeadline(reader, caller, filter, input),
  );
}

async function listByDeadline(reader: Reader, caller: Caller, filter: WarrantFilter, input: ListInput) {
  const { limit = PAGE_DEFAULT, offset = 0 } = input;
  // One row more than the page shows whether another page follows.
  const rows = await reader.warrants.byDeadline(caller, filter, offset, limit + 1);
  const hasMore = rows.length > limit;
  return warrantListResource(rows.slice(0, limit), {
    has_more: hasMore,
    sort: "deadline",
    next_offset: hasMore && offset + limit <= OFFSET_MAX ? offset + limit : null,
    next_cursor: null,
  });
}

async function listByCreation(reader: Reader, caller: Caller, filter: WarrantFilter, input: ListInput) {
  const { limit = PAGE_DEFAULT, starting_after: after, ending_before: before } = input;
  if (after !== undefined && before !== undefined) {
    return refuseField("ending_before", "cannot go together with starting_after");
  }
  const unknown =
    (await refuseUnknownCursor(reader, caller, "starting_after", after)) ??
    (await refuseUnknownCursor(reader, caller, "ending_before", before));
  if (unknown) return unknown;
  const rows = await reader.warrants.byCreation(
    caller,
    filter,
    { ...(after !== undefined && { olderThan: after }), ...(before !== undefined && { newerThan: before }) },
    limit + 1,
  );
  const hasMore = rows.length > limit;
  // The rows are newest first. The row beyond the page is the last one after `starting_after`, and the first
  // one before `ending_before`.
  const page = before === undefined || !hasMore ? rows.slice(0, limit) : rows.slice(1);
  const next = before === undefined ? page.at(-1) : page.at(0);
  return warrantListResource(page, {
    has_more: hasMore,
    sort: "created",
    next_offset: null,
    next_cursor: hasMore && next ? next.id : null,
  });
}

async function refuseUnknownCursor(
  reader: Reader,
  caller: Caller,
  name: "starting_after" | "ending_before",
  cursor: string | undefined,
): Promise<Refusal | null> {
  if (cursor === undefined || (await reader.warrants.get(caller, cursor))) return null;
  return refuseField(name, "there is no such warrant to continue from");
}
