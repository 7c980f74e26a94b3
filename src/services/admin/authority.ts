import type { Administrator } from "../../core/audit-entry.ts";
import type { Refusal } from "../../core/errors.ts";
import { organisationNotFound } from "../../core/organisation.ts";
import { type Caller, MODES, type Mode, type Role, refuseAccess } from "../../core/roles.ts";
import type { Complete, Needs, Snapshot } from "../../store/needs.ts";
import type { Reader } from "../../store/reader.ts";
import type { Scope } from "../../store/scope.ts";
import type { ScopedCommand } from "../../store/store.ts";
import { type Audited, executeAudited } from "../audited.ts";
import { type CredentialNeeds, callerNow, credentialOf, NO_CREDENTIAL } from "../caller-now.ts";
import type { Context } from "../context.ts";
import { refuseUnlisted } from "../fields.ts";

/** Who manages: the operator of the machine, on its command line, or a signed-in person. An API key is refused. */
export type Authority = { readonly kind: "machine" } | Caller;

export const MACHINE: Authority = { kind: "machine" };

const accessOf = (role: Role) => ({ role, keys: false });

/**
 * Null where the authority is sufficient. The operator of the machine may do all; a person needs the role.
 */
export const refuseAuthority = (authority: Authority, role: Role): Refusal | null =>
  authority.kind === "machine" ? null : refuseAccess(authority, accessOf(role));

/** Whether this authority can see a thing. A person sees one organisation, in one mode at a time. */
export const reaches = (
  authority: Authority,
  thing: { readonly organisationId: string; readonly mode?: Mode },
): boolean =>
  authority.kind === "machine" ||
  (authority.organisationId === thing.organisationId &&
    (thing.mode === undefined || authority.mode === thing.mode));

/** Null where the organisation exists and the authority can see it. */
export const refuseOrganisation = (
  authority: Authority,
  organisation: { readonly id: string } | null,
): Refusal | null =>
  organisation && reaches(authority, { organisationId: organisation.id }) ? null : organisationNotFound();

/** The organisation and mode to read, once it is checked that the authority may read them with that role. */
export async function readableScope(
  reader: Reader,
  authority: Authority,
  role: Role,
  { organisation_id: organisationId, mode }: { readonly organisation_id: string; readonly mode: Mode },
): Promise<Scope | Refusal> {
  const refused =
    refuseAuthority(authority, role) ??
    refuseUnlisted("mode", mode, MODES) ??
    refuseOrganisation(authority, await reader.organisations.get(organisationId));
  return refused ?? { organisationId, mode };
}

/**
 * A command that the audit log records. `authority` is who gave it, with the role that they have at the
 * commit.
 */
type Administration<N extends Needs, Answer> = {
  readonly scope: Scope;
  /** How many entries it has in the audit log at most; 3 where it does not say. */
  readonly entriesMax?: number;
  readonly needs: N & Complete<N, N & CredentialNeeds>;
  readonly decide: (
    snapshot: Snapshot<N & CredentialNeeds>,
    now: number,
    authority: Authority,
  ) => Audited<Answer>;
};

/**
 * Commits a command together with its audit entries. A person's role and sign-in are checked again in the
 * commit, so somebody who was removed, demoted or signed out meanwhile changes nothing.
 */
export async function administer<N extends Needs, Answer>(
  ctx: Context,
  authority: Authority,
  role: Role,
  { scope, entriesMax, needs, decide }: Administration<N, Answer>,
): Promise<Answer | Refusal> {
  const elsewhere = refuseOrganisation(authority, { id: scope.organisationId });
  if (elsewhere) return elsewhere;
  const credentialNeeds = authority.kind === "machine" ? NO_CREDENTIAL : credentialOf(authority);
  return executeAudited<N & CredentialNeeds, Answer>(ctx, administratorOf(authority), {
    scope,
    entriesMax,
    // Each part is complete, but the compiler cannot tell that of both together: N is not known here.
    needs: { ...needs, ...credentialNeeds } satisfies N & CredentialNeeds as ScopedCommand<
      N & CredentialNeeds,
      unknown
    >["needs"],
    decide(snapshot, now) {
      if (authority.kind === "machine") return decide(snapshot, now, authority);
      const credential: Snapshot<CredentialNeeds> = snapshot;
      const present = callerNow(authority, accessOf(role), credential, now);
      return "refused" in present ? { answer: present } : decide(snapshot, now, present);
    },
  });
}

export function administratorOf(authority: Authority): Administrator {
  if (authority.kind === "key") throw new Error("an API key administers nothing");
  return authority.kind === "machine"
    ? { kind: "machine", id: null }
    : { kind: "user", id: authority.userId };
}
