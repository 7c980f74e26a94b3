import type { User } from "../../core/directory.ts";
import { type Refusal, refuse } from "../../core/errors.ts";
import type { Context } from "../context.ts";
import { TOO_MANY_SIGN_INS } from "./throttle.ts";

/**
 * Asks a signed-in person for the password once more, so that a stolen cookie is not enough. Null where it is right; wrong
 * ones are `not_authenticated` and count as failed sign-ins, too many of them are `rate_limit_exceeded`.
 */
export async function confirmPassword(
  ctx: Context,
  user: User,
  password: string,
  address: string,
): Promise<Refusal | null> {
  const now = ctx.now();
  if (!ctx.signInThrottle.admit(user.email, address, now)) return TOO_MANY_SIGN_INS;
  if (!(await ctx.passwords.verify(password, user.passwordHash))) {
    return refuse("not_authenticated", "The password is wrong.");
  }
  ctx.signInThrottle.forget(user.email, address, now);
  return null;
}
