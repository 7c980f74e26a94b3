import { type Refusal, refuse } from "../../core/errors.ts";
import { type Mode, type PersonCaller, type Role, refuseAccess } from "../../core/roles.ts";

/** Who manages: the operator of the machine, on its command line, or a signed-in person. */
export type Authority = { readonly kind: "machine" } | PersonCaller;

export const MACHINE: Authority = { kind: "machine" };

/** Null where the authority may; a person needs the role (decisions.md, Sign-in, roles, passkeys). */
export const refuseAuthority = (authority: Authority, role: Role): Refusal | null =>
  authority.kind === "machine" ? null : refuseAccess(authority, { role, keys: false });

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
