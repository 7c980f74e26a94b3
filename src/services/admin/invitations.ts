import type { Refusal } from "../../core/errors.ts";
import { ROLES } from "../../core/roles.ts";
import { NO_PASSWORD } from "../../core/user.ts";
import { userResource } from "../../resources/user.ts";
import type { Audited } from "../audited.ts";
import type { Context } from "../context.ts";
import { refuseEmail, refuseText, refuseUnlisted } from "../fields.ts";
import { type Authority, administer, refuseAuthority } from "./authority.ts";
import { type NewPasswordReset, newResetLink } from "./password-resets.ts";
import { managerOf, refuseManaging, refuseTakenEmail, scopeOf, type UserInput, userRow } from "./users.ts";

type Invitation = {
  readonly user: ReturnType<typeof userResource>;
  /** By which they choose their password, once, within seven days. It is shown only here. */
  readonly link: NewPasswordReset;
};

/**
 * Makes a person who chooses the password by a link, so that nobody else ever knows it. Only an owner invites admins and owners;
 * an admin invites all others too.
 */
export async function inviteUser(
  ctx: Context,
  authority: Authority,
  input: Omit<UserInput, "password">,
): Promise<Invitation | Refusal> {
  const refused =
    refuseAuthority(authority, "admin") ??
    refuseUnlisted("role", input.role, ROLES) ??
    refuseManaging(authority, input.role) ??
    refuseEmail("email", input.email) ??
    (input.name === undefined ? null : refuseText("name", input.name));
  if (refused) return refused;
  const user = userRow(ctx, input, NO_PASSWORD);
  const link = newResetLink(ctx);
  return administer(ctx, authority, managerOf(input.role), {
    scope: scopeOf(user),
    needs: { userByEmail: user.email },
    decide: ({ userByEmail }, now, current): Audited<Invitation> => {
      const taken = refuseTakenEmail("email", userByEmail);
      if (taken) return { answer: taken };
      const { put, answer, entry } = link.for(user, current, now);
      const resource = userResource(user);
      return {
        answer: { user: resource, link: answer },
        put: [{ kind: "user", before: null, row: user }, ...put],
        entries: [{ action: "user.created", subject: user.id, before: null, after: resource }, entry],
      };
    },
  });
}
