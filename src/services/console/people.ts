import { isRefusal, type Refusal } from "../../core/errors.ts";
import {
  ACCESS,
  type PersonCaller,
  ROLES,
  type Role,
  refuseAccess,
  roleIsAtLeast,
} from "../../core/roles.ts";
import { isInvited, type User } from "../../core/user.ts";
import type { Reader } from "../../store/reader.ts";
import { findUser, refuseManaging } from "../admin/users.ts";
import { signInsOf } from "../auth/sign-ins.ts";
import type { Context } from "../context.ts";

/** The people of an organisation, for those who manage them. */

const PAGE_SIZE = 25;

export type Person = {
  readonly user: Omit<User, "passwordHash">;
  /** Whether they have not chosen a password yet. */
  readonly isInvited: boolean;
  readonly passkeys: number;
  /** Of what is remembered; null where nothing is. */
  readonly lastSignInAt: number | null;
};

/** @param after the id of the last one on the page before; null on the first page */
export async function listPeople(ctx: Context, caller: PersonCaller, after: string | null) {
  const refused = refuseAccess(caller, ACCESS.administer);
  if (refused) return refused;
  return ctx.store.read(async (reader) => {
    const found = await reader.users.list(caller.organisationId, { after, limit: PAGE_SIZE + 1 });
    const people: Person[] = [];
    for (const user of found.slice(0, PAGE_SIZE)) people.push(await personOf(reader, user));
    return { people, hasMore: found.length > PAGE_SIZE };
  });
}

async function personOf(reader: Reader, { passwordHash, ...user }: User): Promise<Person> {
  return {
    user,
    isInvited: isInvited({ passwordHash }),
    passkeys: (await reader.passkeys.of(user.id)).length,
    lastSignInAt: await reader.authSessions.lastSignInOf(user.id),
  };
}

/** What the caller may do to a person. Each verb asks again when it does it. */
type PersonPowers = {
  readonly manages: boolean;
  readonly roles: readonly Role[];
  readonly resetsPassword: boolean;
};

/** The roles that a person may give to others. */
export const rolesGivenBy = (caller: PersonCaller): readonly Role[] =>
  ROLES.filter((role) => refuseManaging(caller, role) === null);

function powersOver(caller: PersonCaller, { user, isInvited: invited }: Person): PersonPowers {
  const manages = refuseManaging(caller, user.role) === null;
  return {
    manages,
    roles: manages ? rolesGivenBy(caller) : [],
    resetsPassword: invited ? manages : !roleIsAtLeast(user.role, caller.role),
  };
}

/** One person, where they are signed in, and what the caller may do to them. */
export async function readPerson(ctx: Context, caller: PersonCaller, id: string) {
  const refused = refuseAccess(caller, ACCESS.administer);
  if (refused) return refused;
  return ctx.store.read(async (reader) => {
    const user = await findUser(reader, caller, id);
    if (isRefusal(user)) return user;
    const person = await personOf(reader, user);
    const may = powersOver(caller, person);
    const signIns = may.manages
      ? (await signInsOf(reader, id, { now: ctx.now(), current: caller.signInHash })).data
      : [];
    return { person, may, signIns };
  });
}

export type PersonDetail = Exclude<Awaited<ReturnType<typeof readPerson>>, Refusal>;
