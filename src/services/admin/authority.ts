import { type Refusal, refuse } from "../../core/errors.ts";
import { type Caller, MODES, type Mode, type Role, refuseAccess } from "../../core/roles.ts";
import type { Command, Decision, Scope, Snapshot } from "../../store/store.ts";
import type { Context } from "../context.ts";
import { asOfNow, credentialOf, refuseEndedCaller } from "../intent.ts";
import { refuseUnlisted } from "./fields.ts";

/** Who manages: the operator of the machine, on its command line, or a signed-in person. An API key is refused. */
export type Authority = { readonly kind: "machine" } | Caller;

export const MACHINE: Authority = { kind: "machine" };

const accessOf = (role: Role) => ({ role, keys: false });

/** Null where the authority may; a person needs the role (decisions.md, Sign-in, roles, passkeys). */
export const refuseAuthority = (authority: Authority, role: Role): Refusal | null =>
  authority.kind === "machine" ? null : refuseAccess(authority, accessOf(role));

/** Whether a thing is there at all for this authority: a person sees one organisation, and one mode at a time. */
export const reaches = (
  authority: Authority,
  thing: { readonly organisationId: string; readonly mode?: Mode },
): boolean =>
  authority.kind === "machine" ||
  (authority.organisationId === thing.organisationId &&
    (thing.mode === undefined || authority.mode === thing.mode));

/** Null where the organisation was loaded and is the authority's. */
export const refuseOrganisation = (
  authority: Authority,
  organisation: { readonly id: string } | null,
): Refusal | null =>
  organisation && reaches(authority, { organisationId: organisation.id }) ? null : organisationNotFound();

export const organisationNotFound = (): Refusal =>
  refuse("organisation_not_found", "There is no such organisation.");

/** The books of an organisation's mode that a read is of, once the authority may read them with that role. */
export function readableScope(
  { store }: Context,
  authority: Authority,
  role: Role,
  { organisation_id: organisationId, mode }: { readonly organisation_id: string; readonly mode: Mode },
): Scope | Refusal {
  const refused =
    refuseAuthority(authority, role) ??
    refuseUnlisted("mode", mode, MODES) ??
    refuseOrganisation(authority, store.reader.organisations.get(organisationId));
  return refused ?? { organisationId, mode };
}

/** A command that is an administrative act. `authority` is whose act it is, with the role that they have in the commit. */
type Administration<Answer> = Omit<Command<Answer>, "decide"> & {
  readonly decide: (snapshot: Snapshot, authority: Authority) => Decision<Answer>;
};

/**
 * Commits an administrative act. A person's authority is asked for again in the commit: who was removed, demoted or signed
 * out while the request was on its way changes nothing.
 */
export async function administer<Answer>(
  { store, now }: Context,
  authority: Authority,
  role: Role,
  { scope, needs, decide }: Administration<Answer>,
): Promise<Answer | Refusal> {
  if (authority.kind === "machine") {
    return store.execute({ scope, needs, decide: (snapshot) => decide(snapshot, authority) });
  }
  const elsewhere = refuseOrganisation(authority, { id: scope.organisationId });
  if (elsewhere) return elsewhere;
  const at = now();
  return store.execute({
    scope,
    needs: { ...needs, ...credentialOf(authority) },
    decide: (snapshot) => {
      const ended = refuseEndedCaller(authority, accessOf(role), snapshot, at);
      return ended ? { answer: ended } : decide(snapshot, asOfNow(authority, snapshot));
    },
  });
}
