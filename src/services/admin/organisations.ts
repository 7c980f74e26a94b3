import type { Organisation } from "../../core/directory.ts";
import type { Refusal } from "../../core/errors.ts";
import type { Context } from "../context.ts";
import { organisationResource, userResource } from "../resources.ts";
import { refuseEmail, refusePassword, refuseText } from "./fields.ts";
import { newUser, refuseTakenEmail } from "./users.ts";

export type OrganisationInput = {
  readonly name: string;
  readonly owner_email: string;
  readonly owner_password: string;
};

export type NewOrganisation = {
  readonly organisation: ReturnType<typeof organisationResource>;
  readonly owner: ReturnType<typeof userResource>;
};

/** Creates an organisation and its first owner: neither without the other. Only the operator of the machine may. */
export async function createOrganisation(
  ctx: Context,
  input: OrganisationInput,
): Promise<NewOrganisation | Refusal> {
  const refused =
    refuseText("name", input.name) ??
    refuseEmail("owner_email", input.owner_email) ??
    refusePassword("owner_password", input.owner_password);
  if (refused) return refused;
  const organisation: Organisation = {
    id: ctx.newId("organisation"),
    name: input.name,
    killSwitch: false,
    passkeyThreshold: null,
    createdAt: ctx.now(),
  };
  const owner = await newUser(ctx, {
    organisation_id: organisation.id,
    email: input.owner_email,
    password: input.owner_password,
    role: "owner",
  });
  return ctx.store.execute({
    scope: { organisationId: organisation.id, mode: "live" },
    needs: { userEmail: owner.email },
    decide: (snapshot) => {
      const taken = refuseTakenEmail("owner_email", snapshot.user);
      if (taken) return { answer: taken };
      return {
        answer: { organisation: organisationResource(organisation), owner: userResource(owner) },
        change: {
          rows: [
            { kind: "organisation", row: organisation },
            { kind: "user", row: owner },
          ],
        },
      };
    },
  });
}
