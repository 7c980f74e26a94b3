import { isRefusal } from "../../../core/errors.ts";
import { ACCESS, type Caller } from "../../../core/roles.ts";
import type { Context } from "../../context.ts";
import { listResource } from "../../resources.ts";
import { personOf } from "../person.ts";
import { passkeyResource } from "./resources.ts";

/** The caller's own passkeys, oldest first. */
export function listPasskeys(ctx: Context, caller: Caller) {
  const user = personOf(ctx, caller, ACCESS.keepOwnSignIn);
  if (isRefusal(user)) return user;
  return listResource(ctx.store.reader.passkeys.of(user.id).map(passkeyResource));
}
