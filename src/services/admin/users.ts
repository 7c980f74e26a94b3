import { isRefusal, type Refusal, refuse } from "../../core/errors.ts";
import type { Passkey } from "../../core/passkey.ts";
import { ROLES, type Role, roleIsAtLeast } from "../../core/roles.ts";
import type { User } from "../../core/user.ts";
import type { Scope } from "../../store/store.ts";
import type { Context } from "../context.ts";
import { listResource, userResource } from "../resources.ts";
import { recordingAct } from "./acts.ts";
import {
  type Authority,
  administer,
  MACHINE,
  reaches,
  refuseAuthority,
  refuseOrganisation,
} from "./authority.ts";
import { normaliseEmail, refuseEmail, refusePassword, refuseText, refuseUnlisted } from "./fields.ts";

export type UserInput = {
  readonly organisation_id: string;
  readonly email: string;
  readonly password: string;
  readonly role: Role;
  /** What people call them; without it, the e-mail's part before the `@`. */
  readonly name?: string;
};

type UserResource = ReturnType<typeof userResource>;

/** Creates a person of an organisation. Admins and owners are created by owners, everyone else by admins too. */
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
  const user = await newUser(ctx, input);
  const record = recordingAct(ctx, authority, "user.created");
  return administer(ctx, authority, managerOf(input.role), {
    scope: scopeOf(user),
    needs: { organisation: true, userEmail: user.email },
    decide: (snapshot) => {
      const last =
        refuseOrganisation(authority, snapshot.organisation) ?? refuseTakenEmail("email", snapshot.user);
      if (last) return { answer: last };
      const answer = userResource(user);
      const act = record(user.organisationId, user.id, null, answer);
      return { answer, change: { rows: [{ kind: "user", row: user }, act] } };
    },
  });
}

/** The people of an organisation, in the order in which they came. */
export async function listUsers(
  ctx: Context,
  authority: Authority,
  input: { readonly organisation_id: string },
): Promise<{ readonly object: "list"; readonly data: readonly UserResource[] } | Refusal> {
  const { organisations, users } = ctx.store.reader;
  return (
    refuseAuthority(authority, "admin") ??
    refuseOrganisation(authority, organisations.get(input.organisation_id)) ??
    listResource(users.list(input.organisation_id).map(userResource))
  );
}

/**
 * Gives a person another role, from their next request on. Nobody gives or takes a role that they may not manage, so
 * nobody rises by themself; the last owner stays one. Reset links that nobody used are void.
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
  const known = findUser(ctx, authority, input.user_id);
  if (isRefusal(known)) return known;
  const record = recordingAct(ctx, authority, "user.role_changed");
  const at = ctx.now();
  return administer(ctx, authority, managerOf(input.role), {
    scope: scopeOf(known),
    needs: { userId: known.id, otherOwnerThan: known.id },
    decide: ({ user, hasOtherOwner }, current) => {
      if (!user) return { answer: userNotFound(known.id) };
      const last = refuseManaging(current, user.role) ?? refuseLastOwner(user, input.role, hasOtherOwner);
      if (last) return { answer: last };
      if (user.role === input.role) return { answer: userResource(user) };
      const after = { ...user, role: input.role };
      const answer = userResource(after);
      const act = record(user.organisationId, user.id, userResource(user), answer);
      return {
        answer,
        change: {
          rows: [{ kind: "user", row: after }, act],
          // A link was made for the role that they had.
          voidsPasswordResetsOf: { userId: user.id, at },
        },
      };
    },
  });
}

/**
 * Removes a person: they sign in no more, their sign-ins and reset links end, and their passkeys go. What they did keeps
 * their id, and API keys stay, since they are agents'.
 */
export async function removeUser(
  ctx: Context,
  authority: Authority,
  input: { readonly user_id: string },
): Promise<UserResource | Refusal> {
  const refused = refuseAuthority(authority, "admin");
  if (refused) return refused;
  const known = findUser(ctx, authority, input.user_id);
  if (isRefusal(known)) return known;
  const record = recordingAct(ctx, authority, "user.removed");
  const at = ctx.now();
  return administer(ctx, authority, "admin", {
    scope: scopeOf(known),
    needs: { userId: known.id, otherOwnerThan: known.id, passkeysOf: known.id },
    decide: ({ user, passkeys, hasOtherOwner }, current) => {
      if (!user) return { answer: userNotFound(known.id) };
      const last = refuseManaging(current, user.role) ?? refuseLastOwner(user, null, hasOtherOwner);
      if (last) return { answer: last };
      const after = { ...user, removedAt: at };
      const answer = userResource(after);
      const was = { ...userResource(user), passkeys: passkeys.map(namedPasskey) };
      const act = record(user.organisationId, user.id, was, { ...answer, passkeys: [] });
      return {
        answer,
        change: {
          rows: [{ kind: "user", row: after }, act],
          endsSignInsOf: { userId: user.id, exceptTokenHash: null, at },
          voidsPasswordResetsOf: { userId: user.id, at },
          removesPasskeys: passkeys.map(({ id }) => id),
        },
      };
    },
  });
}

/** Takes a person's passkeys away, for somebody who lost them. Only the operator of the machine may. */
export async function resetPasskeys(
  ctx: Context,
  input: { readonly user_id: string },
): Promise<UserResource | Refusal> {
  const known = findUser(ctx, MACHINE, input.user_id);
  if (isRefusal(known)) return known;
  const record = recordingAct(ctx, MACHINE, "passkeys.reset");
  return ctx.store.execute({
    scope: scopeOf(known),
    needs: { userId: known.id, passkeysOf: known.id },
    decide: ({ user, passkeys }) => {
      if (!user) return { answer: userNotFound(known.id) };
      if (passkeys.length === 0) return { answer: userResource(user) };
      const was = { passkeys: passkeys.map(namedPasskey) };
      return {
        answer: userResource(user),
        change: {
          rows: [record(user.organisationId, user.id, was, { passkeys: [] })],
          removesPasskeys: passkeys.map(({ id }) => id),
        },
      };
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

/** The person of an id, where the authority reaches them; not somebody who was removed. */
export function findUser(ctx: Context, authority: Authority, id: string): User | Refusal {
  const user = ctx.store.reader.users.get(id);
  return user && user.removedAt === null && reaches(authority, user) ? user : userNotFound(id);
}

export const userNotFound = (id: string): Refusal => refuse("user_not_found", `There is no person ${id}.`);

export const refuseTakenEmail = (path: string, holder: User | null): Refusal | null =>
  holder && refuse("already_exists", `${path}: somebody with the e-mail ${holder.email} exists already.`);

/** People belong to the organisation, not to one of its modes. */
const scopeOf = ({ organisationId }: User): Scope => ({ organisationId, mode: "live" });

/** Admins and owners are managed by owners, everyone else by admins too. */
const managerOf = (role: Role): Role => (roleIsAtLeast(role, "admin") ? "owner" : "admin");

const refuseManaging = (authority: Authority, role: Role): Refusal | null =>
  refuseAuthority(authority, managerOf(role));

/** What the audit log keeps of a passkey that went with others. */
const namedPasskey = ({ id, name }: Passkey) => ({ id, name });

/** An organisation without an owner could never have one again, but on the machine itself. */
const refuseLastOwner = (user: User, roleAfter: Role | null, hasOtherOwner: boolean): Refusal | null =>
  user.role !== "owner" || roleAfter === "owner" || hasOtherOwner
    ? null
    : refuse("last_owner", `${user.email} is the organisation's last owner; make somebody else one first.`);
