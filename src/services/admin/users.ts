import { isRefusal, type Refusal, refuse } from "../../core/errors.ts";
import { organisationNotFound } from "../../core/organisation.ts";
import type { Passkey } from "../../core/passkey.ts";
import { ROLES, type Role, roleIsAtLeast } from "../../core/roles.ts";
import type { User } from "../../core/user.ts";
import { listResource } from "../../resources/list.ts";
import { userResource } from "../../resources/user.ts";
import type { Deletion } from "../../store/change.ts";
import type { Reader } from "../../store/reader.ts";
import type { Scope } from "../../store/scope.ts";
import { type Audited, executeAudited } from "../audited.ts";
import { refuseWeakPassword } from "../auth/weak-password.ts";
import type { Context } from "../context.ts";
import {
  contactNeeds,
  endContacts,
  endSignIns,
  namedSignIns,
  voidPasswordResets,
  withContacts,
} from "../end-credentials.ts";
import { normaliseEmail, refuseEmail, refusePassword, refuseText, refuseUnlisted } from "../fields.ts";
import { type PageOfList, pageOfList } from "../page-of-list.ts";
import {
  type Authority,
  administer,
  administratorOf,
  MACHINE,
  reaches,
  refuseAuthority,
  refuseOrganisation,
} from "./authority.ts";

export type UserInput = {
  readonly organisation_id: string;
  readonly email: string;
  readonly password: string;
  readonly role: Role;
  /** The person's name. By default, the part of the e-mail before the `@`. */
  readonly name?: string;
};

type UserResource = ReturnType<typeof userResource>;

/**
 * Creates a person in an organisation. Only an owner creates admins and owners; an admin creates all others
 * too.
 */
export async function createUser(
  ctx: Context,
  authority: Authority,
  input: UserInput,
): Promise<UserResource | Refusal> {
  const refused =
    refuseAuthority(authority, "admin") ??
    refuseUnlisted("role", input.role, ROLES) ??
    refuseManaging(authority, input.role) ??
    refuseEmail("email", input.email) ??
    refusePassword("password", input.password) ??
    (input.name === undefined ? null : refuseText("name", input.name));
  if (refused) return refused;
  const organisation = await ctx.store.read(({ organisations }) => organisations.get(input.organisation_id));
  if (!organisation || !reaches(authority, { organisationId: organisation.id }))
    return organisationNotFound();
  const { email, name = "" } = input;
  const weak = await refuseWeakPassword(ctx, "password", input.password, { email, name, organisation });
  if (weak) return weak;
  const user = await newUser(ctx, input);
  return administer(ctx, authority, managerOf(input.role), {
    scope: scopeOf(user),
    needs: { userByEmail: user.email },
    decide: ({ userByEmail }): Audited<UserResource> => {
      const taken = refuseTakenEmail("email", userByEmail);
      if (taken) return { answer: taken };
      const answer = userResource(user);
      return {
        answer,
        put: [{ kind: "user", before: null, row: user }],
        entries: [{ action: "user.created", subject: user.id, before: null, after: answer }],
      };
    },
  });
}

/** The people of an organisation, in the order of their creation. */
export async function listUsers(
  ctx: Context,
  authority: Authority,
  input: { readonly organisation_id: string } & PageOfList,
) {
  const { organisation_id: organisationId } = input;
  return ctx.store.read(async ({ organisations, users }) => {
    const refused =
      refuseAuthority(authority, "admin") ??
      refuseOrganisation(authority, await organisations.get(organisationId));
    if (refused) return refused;
    const page = await pageOfList(
      input,
      (part) => users.list(organisationId, part),
      // A page goes on though the last person of the one before was removed since.
      async (id) => {
        const user = await users.get(id);
        return user?.organisationId === organisationId ? user : null;
      },
    );
    return isRefusal(page) ? page : { ...listResource(page.rows.map(userResource)), ...page.more };
  });
}

/**
 * Gives a person another role, from their next request on. Both the old and the new role must be ones that
 * the authority may manage, so nobody raises their own role. The last owner cannot be demoted. The person's
 * unused reset links become void.
 */
export async function setUserRole(
  ctx: Context,
  authority: Authority,
  input: { readonly user_id: string; readonly role: Role },
): Promise<UserResource | Refusal> {
  const refused =
    refuseAuthority(authority, "admin") ??
    refuseUnlisted("role", input.role, ROLES) ??
    refuseManaging(authority, input.role);
  if (refused) return refused;
  const known = await ctx.store.read((reader) => findUser(reader, authority, input.user_id));
  if (isRefusal(known)) return known;
  return administer(ctx, authority, managerOf(input.role), {
    scope: scopeOf(known),
    needs: { user: known.id, hasOtherOwner: known.id, unusedPasswordResets: known.id },
    decide: ({ user, hasOtherOwner, unusedPasswordResets }, now, current): Audited<UserResource> => {
      if (!user) return { answer: userNotFound(known.id) };
      const last = refuseManaging(current, user.role) ?? refuseLastOwner(user, input.role, hasOtherOwner);
      if (last) return { answer: last };
      const before = userResource(user);
      if (user.role === input.role) return { answer: before };
      const row = { ...user, role: input.role };
      const after = userResource(row);
      return {
        answer: after,
        // Who may make a reset link depends on the person's role, so links made for the old role become void.
        put: [{ kind: "user", before: user, row }, ...voidPasswordResets(unusedPasswordResets, now)],
        entries: [{ action: "user.role_changed", subject: user.id, before, after }],
      };
    },
  });
}

/**
 * Removes a person. They cannot sign in any more: their sign-ins and reset links end, their passkeys are deleted, their chat is
 * unlinked, and their devices are forgotten. Records of what they did keep their id. API keys stay, since they belong to agents.
 */
export async function removeUser(
  ctx: Context,
  authority: Authority,
  input: { readonly user_id: string },
): Promise<UserResource | Refusal> {
  const refused = refuseAuthority(authority, "admin");
  if (refused) return refused;
  const known = await ctx.store.read((reader) => findUser(reader, authority, input.user_id));
  if (isRefusal(known)) return known;
  const { id } = known;
  return administer(ctx, authority, "admin", {
    scope: scopeOf(known),
    needs: {
      ...{ user: id, hasOtherOwner: id, passkeys: id, userSessions: id, unusedPasswordResets: id },
      ...contactNeeds(id),
    },
    decide: (snapshot, now, current): Audited<UserResource> => {
      const { user, hasOtherOwner, passkeys, userSessions, unusedPasswordResets } = snapshot;
      if (!user) return { answer: userNotFound(id) };
      const last = refuseManaging(current, user.role) ?? refuseLastOwner(user, null, hasOtherOwner);
      if (last) return { answer: last };
      const row = { ...user, removedAt: now };
      const answer = userResource(row);
      const before = {
        ...{ ...userResource(user), passkeys: passkeys.map(namedPasskey) },
        ...namedSignIns(userSessions, now),
      };
      return {
        answer,
        put: [
          { kind: "user", before: user, row },
          ...endSignIns(userSessions, now),
          ...voidPasswordResets(unusedPasswordResets, now),
        ],
        deleted: [...passkeys.map(removedPasskey), ...endContacts(snapshot)],
        entries: withContacts(
          { action: "user.removed", subject: id, before, after: { ...answer, passkeys: [], sign_ins: [] } },
          snapshot,
        ),
      };
    },
  });
}

/** Deletes all passkeys of a person who has lost them. Only the operator of the machine may. */
export async function resetPasskeys(
  ctx: Context,
  input: { readonly user_id: string },
): Promise<UserResource | Refusal> {
  const known = await ctx.store.read((reader) => findUser(reader, MACHINE, input.user_id));
  if (isRefusal(known)) return known;
  return executeAudited(ctx, administratorOf(MACHINE), {
    scope: scopeOf(known),
    needs: { user: known.id, passkeys: known.id },
    decide: ({ user, passkeys }): Audited<UserResource> => {
      if (!user) return { answer: userNotFound(known.id) };
      const answer = userResource(user);
      if (passkeys.length === 0) return { answer };
      const before = { passkeys: passkeys.map(namedPasskey) };
      return {
        answer,
        put: [],
        deleted: passkeys.map(removedPasskey),
        entries: [{ action: "passkeys.reset", subject: user.id, before, after: { passkeys: [] } }],
      };
    },
  });
}

/** The row of a new person. The fields have been checked already. */
export const newUser = async (ctx: Context, input: UserInput): Promise<User> =>
  userRow(ctx, input, await ctx.passwords.hash(input.password));

export function userRow(ctx: Context, input: Omit<UserInput, "password">, passwordHash: string): User {
  const email = normaliseEmail(input.email);
  return {
    id: ctx.newId("user"),
    organisationId: input.organisation_id,
    email,
    name: input.name ?? email.slice(0, email.lastIndexOf("@")).slice(0, 200),
    role: input.role,
    passwordHash,
    passwordResetAt: null,
    removedAt: null,
    createdAt: ctx.now(),
  };
}

/** The person with this id, where the authority may see them. A removed person is not found. */
export async function findUser(reader: Reader, authority: Authority, id: string): Promise<User | Refusal> {
  const user = await reader.users.get(id);
  return user && user.removedAt === null && reaches(authority, user) ? user : userNotFound(id);
}

export const userNotFound = (id: string): Refusal => refuse("user_not_found", `There is no person ${id}.`);

export const refuseTakenEmail = (path: string, holder: User | null): Refusal | null =>
  holder && refuse("already_exists", `${path}: somebody with the e-mail ${holder.email} exists already.`);

/** People belong to the organisation, not to one of its modes. */
export const scopeOf = ({ organisationId }: User): Scope => ({ organisationId, mode: "live" });

/** The lowest role that may manage people of this role: only owners manage admins and owners. */
export const managerOf = (role: Role): Role => (roleIsAtLeast(role, "admin") ? "owner" : "admin");

export const refuseManaging = (authority: Authority, role: Role): Refusal | null =>
  refuseAuthority(authority, managerOf(role));

/** What the audit log shows of a passkey that was deleted together with others. */
const namedPasskey = ({ id, name }: Passkey) => ({ id, name });

const removedPasskey = (row: Passkey): Deletion => ({ kind: "passkey", row });

/**
 * Refuses to demote or remove the last owner: afterwards only the operator of the machine could make another
 * one.
 */
const refuseLastOwner = (user: User, roleAfter: Role | null, hasOtherOwner: boolean): Refusal | null =>
  user.role !== "owner" || roleAfter === "owner" || hasOtherOwner
    ? null
    : refuse("last_owner", `${user.email} is the organisation's last owner; make somebody else one first.`);
