import type { Administrator } from "../../core/audit-entry.ts";
import { type Refusal, refuse } from "../../core/errors.ts";
import { type Organisation, organisationNotFound } from "../../core/organisation.ts";
import type { User } from "../../core/user.ts";
import { listResource } from "../../resources/list.ts";
import { organisationResource } from "../../resources/organisation.ts";
import { userResource } from "../../resources/user.ts";
import { type Audited, executeAuditedOfNew } from "../audited.ts";
import { refuseWeakPassword } from "../auth/weak-password.ts";
import type { Context } from "../context.ts";
import { refuseEmail, refusePassword, refuseText } from "../fields.ts";
import { type Authority, administratorOf, MACHINE, reaches, refuseAuthority } from "./authority.ts";
import { newUser, refuseTakenEmail } from "./users.ts";

export type OrganisationInput = {
  readonly name: string;
  readonly owner_email: string;
  readonly owner_password: string;
  /** The owner's name. By default, the part of the e-mail before the `@`. */
  readonly owner_name?: string;
};

export type NewOrganisation = {
  readonly organisation: ReturnType<typeof organisationResource>;
  readonly owner: ReturnType<typeof userResource>;
};

/** Creates an organisation together with its first owner, in one commit. Only the operator of the machine may. */
export const createOrganisation = (
  ctx: Context,
  input: OrganisationInput,
): Promise<NewOrganisation | Refusal> =>
  makeOrganisation(ctx, input, { onlyFirst: false, actorOf: () => administratorOf(MACHINE) });

/**
 * The same for somebody who has the set-up link, as the owner who is made by it. Refused with `already_exists` where the instance
 * has an organisation at the commit.
 */
export const createFirstOrganisation = (
  ctx: Context,
  input: OrganisationInput,
): Promise<NewOrganisation | Refusal> =>
  makeOrganisation(ctx, input, { onlyFirst: true, actorOf: ({ id }) => ({ kind: "user", id }) });

async function makeOrganisation(
  ctx: Context,
  input: OrganisationInput,
  { onlyFirst, actorOf }: { readonly onlyFirst: boolean; readonly actorOf: (owner: User) => Administrator },
): Promise<NewOrganisation | Refusal> {
  const { owner_name: name } = input;
  const refused =
    refuseText("name", input.name) ??
    (name === undefined ? null : refuseText("owner_name", name)) ??
    refuseEmail("owner_email", input.owner_email) ??
    refusePassword("owner_password", input.owner_password);
  if (refused) return refused;
  const weak = await refuseWeakPassword(ctx, "owner_password", input.owner_password, {
    email: input.owner_email,
    name: name ?? "",
    organisation: input,
  });
  if (weak) return weak;
  const organisation: Organisation = {
    id: ctx.newId("organisation"),
    name: input.name,
    killSwitch: false,
    passkeyThreshold: null,
    hidesSpecs: false,
    secondFactor: false,
    messagingDecisions: false,
    createdAt: ctx.now(),
  };
  const owner = await newUser(ctx, {
    organisation_id: organisation.id,
    email: input.owner_email,
    password: input.owner_password,
    role: "owner",
    ...(name !== undefined && { name }),
  });
  return executeAuditedOfNew(ctx, actorOf(owner), organisation.id, {
    needs: { userByEmail: owner.email, hasOrganisation: true },
    decide: ({ userByEmail, hasOrganisation }): Audited<NewOrganisation> => {
      if (onlyFirst && hasOrganisation) return { answer: SET_UP_ALREADY };
      const taken = refuseTakenEmail("owner_email", userByEmail);
      if (taken) return { answer: taken };
      const answer = { organisation: organisationResource(organisation), owner: userResource(owner) };
      return {
        answer,
        put: [
          { kind: "organisation", before: null, row: organisation },
          { kind: "user", before: null, row: owner },
        ],
        entries: [
          {
            action: "organisation.created",
            subject: organisation.id,
            before: null,
            after: answer.organisation,
          },
          { action: "user.created", subject: owner.id, before: null, after: answer.owner },
        ],
      };
    },
  });
}

const SET_UP_ALREADY: Refusal = refuse(
  "already_exists",
  "This Holdfast has an organisation already. Sign in, or ask its owner to invite you.",
);

/** Every organisation of the instance. Only the operator of the machine sees them all. */
export async function listOrganisations(ctx: Context) {
  const organisations = await ctx.store.read((reader) => reader.organisations.list());
  return listResource(organisations.map(organisationResource));
}

/** One organisation, with its switches. */
export async function showOrganisation(
  ctx: Context,
  authority: Authority,
  input: { readonly organisation_id: string },
): Promise<ReturnType<typeof organisationResource> | Refusal> {
  const refused = refuseAuthority(authority, "viewer");
  if (refused) return refused;
  const organisation = await ctx.store.read((reader) => reader.organisations.get(input.organisation_id));
  return organisation && reaches(authority, { organisationId: organisation.id })
    ? organisationResource(organisation)
    : organisationNotFound();
}
