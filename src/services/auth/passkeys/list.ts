import { isRefusal } from "../../../core/errors.ts";
import { ACCESS, type Caller } from "../../../core/roles.ts";
import { listResource } from "../../../resources/list.ts";
import { passkeyResource } from "../../../resources/passkey.ts";
import type { Context } from "../../context.ts";
import { personOf } from "../person.ts";

/** The caller's own passkeys, oldest first. */
export function listPasskeys(ctx: Context, caller: Caller) {
  return ctx.store.read(async (reader) => {
    const user = await personOf(reader, caller, ACCESS.keepOwnSignIn);
    if (isRefusal(user)) return user;
    return listResource((await reader.passkeys.of(user.id)).map(passkeyResource));
  });
}
