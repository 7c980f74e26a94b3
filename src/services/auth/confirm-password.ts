import { type Refusal, refuse } from "../../core/errors.ts";
import type { User } from "../../core/user.ts";
import type { Context } from "../context.ts";
import { attemptSignIn } from "./throttle.ts";

/**
 * Asks a signed-in person for the password again, so that a stolen cookie is not enough. Null where it is
 * right. A wrong one is refused with `not_authenticated` and counts as a failed sign-in; after too many the
 * refusal is `rate_limit_exceeded`.
 */
export function confirmPassword(
  ctx: Context,
  user: User,
  password: string,
  address: string,
): Promise<Refusal | null> {
  return attemptSignIn(ctx, user.email, address, async () =>
    (await ctx.passwords.verify(password, user.passwordHash))
      ? null
      : refuse("not_authenticated", "The password is wrong."),
  );
}
