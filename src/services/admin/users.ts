import type { User } from "../../core/directory.ts";
import { type Refusal, refuse } from "../../core/errors.ts";
import { ROLES, type Role, roleIsAtLeast } from "../../core/roles.ts";
import type { Context } from "../context.ts";
import { userResource } from "../resources.ts";
import { type Authority, refuseAuthority, refuseOrganisation } from "./authority.ts";
import { normaliseEmail, refuseEmail, refusePassword, refuseText, refuseUnlisted } from "./fields.ts";

export type UserInput = {
  readonly organisation_id: string;
  readonly email: string;
  readonly password: string;
  readonly role: Role;
  /** What people call them; without it, the e-mail's part before the `@`. */
  readonly name?: string;
};

/** Creates a person of an organisation. Admins and owners are created by owners, everyone else by admins too. */
export async function createUser(
  ctx: Context,
  authority: Authority,
  input: UserInput,
): Promise<ReturnType<typeof userResource> | Refusal> {
  const refused =
    refuseAuthority(authority, "admin") ??
    refuseUnlisted("role", input.role, ROLES) ??
    (roleIsAtLeast(input.role, "admin") ? refuseAuthority(authority, "owner") : null) ??
    refuseEmail("email", input.email) ??
    refusePassword("password", input.password) ??
    (input.name === undefined ? null : refuseText("name", input.name));
  if (refused) return refused;
  const user = await newUser(ctx, input);
  return ctx.store.execute({
    scope: { organisationId: user.organisationId, mode: "live" },
    needs: { organisation: true, userEmail: user.email },
    decide: (snapshot) => {
      const last =
        refuseOrganisation(authority, snapshot.organisation) ?? refuseTakenEmail("email", snapshot.user);
      if (last) return { answer: last };
      return { answer: userResource(user), change: { rows: [{ kind: "user", row: user }] } };
    },
  });
}

/** The person as they would be kept; the fields have been checked. */
export async function newUser(ctx: Context, input: UserInput): Promise<User> {
  const email = normaliseEmail(input.email);
  return {
    id: ctx.newId("user"),
    organisationId: input.organisation_id,
    email,
    name: input.name ?? email.slice(0, email.lastIndexOf("@")).slice(0, 200),
    role: input.role,
    passwordHash: await ctx.passwords.hash(input.password),
    passwordResetAt: null,
    removedAt: null,
    createdAt: ctx.now(),
  };
}

export const refuseTakenEmail = (path: string, holder: User | null): Refusal | null =>
  holder && refuse("already_exists", `${path}: somebody with the e-mail ${holder.email} exists already.`);
