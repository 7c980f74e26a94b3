import { refuse } from "../../core/errors.ts";
import { ACCESS, type Caller, refuseAccess } from "../../core/roles.ts";
import type { Context } from "../context.ts";

/** Verifiers and named schemas as people see them, a page at a time. */

const PAGE_SIZE = 25;

/** @param olderThan the id after which the page begins; null for the newest */
export async function listVerifiers(ctx: Context, caller: Caller, olderThan: string | null) {
  const refused = refuseAccess(caller, ACCESS.readConsole);
  if (refused) return refused;
  const rows = await ctx.store.read(({ verifiers }) =>
    verifiers.page(caller.organisationId, olderThan, PAGE_SIZE + 1),
  );
  const verifiers = rows.slice(0, PAGE_SIZE);
  return { verifiers, next: rows.length > PAGE_SIZE ? (verifiers.at(-1)?.id ?? null) : null };
}

export async function readVerifier(ctx: Context, caller: Caller, id: string) {
  const refused = refuseAccess(caller, ACCESS.readConsole);
  if (refused) return refused;
  const verifier = await ctx.store.read(({ verifiers }) => verifiers.get(caller.organisationId, id));
  return verifier ?? refuse("verifier_not_found", "There is no such verifier.");
}

/** @param after the name after which the page begins; empty for the first */
export async function listSchemas(ctx: Context, caller: Caller, after: string) {
  const refused = refuseAccess(caller, ACCESS.readConsole);
  if (refused) return refused;
  const rows = await ctx.store.read(({ schemas }) =>
    schemas.page(caller.organisationId, after, PAGE_SIZE + 1),
  );
  const schemas = rows.slice(0, PAGE_SIZE);
  return { schemas, next: rows.length > PAGE_SIZE ? (schemas.at(-1)?.name ?? null) : null };
}

export async function readSchema(ctx: Context, caller: Caller, id: string) {
  const refused = refuseAccess(caller, ACCESS.readConsole);
  if (refused) return refused;
  const schema = await ctx.store.read(({ schemas }) => schemas.get(caller.organisationId, id));
  return schema ?? refuse("route_not_found", "There is no such schema.");
}
