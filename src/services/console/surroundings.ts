import type { Organisation } from "../../core/organisation.ts";
import type { Scope } from "../../store/scope.ts";
import type { Context } from "../context.ts";

/** What every page of the console shows around its own content. */
export type Surroundings = {
  readonly organisation: Organisation;
  /** How many escalations wait for a person, WAITING_MAX at most. */
  readonly waiting: number;
};

/** Above it the number is not counted: nobody reads it. */
export const WAITING_MAX = 100;

export function readSurroundings(ctx: Context, scope: Scope): Promise<Surroundings> {
  return ctx.store.read(async ({ organisations, escalations }) => {
    const organisation = await organisations.get(scope.organisationId);
    if (!organisation) throw new Error("a person without an organisation");
    const listed = await escalations.list(scope, WAITING_MAX);
    return { organisation, waiting: listed.filter(({ status }) => status !== "resolved").length };
  });
}
