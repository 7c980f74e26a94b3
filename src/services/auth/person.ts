import { type Refusal, refuse } from "../../core/errors.ts";
import { type Access, type Caller, refuseAccess } from "../../core/roles.ts";
import type { User } from "../../core/user.ts";
import type { Reader } from "../../store/reader.ts";

/** The signed-in person who calls, where the access allows them. */
export async function personOf(reader: Reader, caller: Caller, access: Access): Promise<User | Refusal> {
  const refused = refuseAccess(caller, access);
  if (refused) return refused;
  const user = caller.kind === "person" ? await reader.users.get(caller.userId) : null;
  return user && user.removedAt === null
    ? user
    : refuse("not_authenticated", "Nobody is signed in with this cookie any more.");
}
