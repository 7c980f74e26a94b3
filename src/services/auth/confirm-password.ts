import type { Client } from "../../core/client.ts";
import { type Refusal, refuse } from "../../core/errors.ts";
import type { User } from "../../core/user.ts";
import type { Context } from "../context.ts";
import { ownAccount } from "./accounts.ts";
import { attemptSignIn } from "./attempt.ts";

/**
 * Asks a signed-in person for the password again, so that a stolen cookie is not enough. Null where it is
 * right. A wrong one is refused with `not_authenticated` and counts as a failed sign-in; after too many it waits, or the
 * refusal is `rate_limit_exceeded`.
 */
export function confirmPassword(
  ctx: Context,
  user: User,
  password: string,
  client: Client,
): Promise<Refusal | null> {
  const attempt = { ...ownAccount(user), by: "password again", client } as const;
  return attemptSignIn(ctx, attempt, async () =>
    (await ctx.passwords.verify(password, user.passwordHash))
      ? null
      : refuse("not_authenticated", "The password is wrong."),
  );
}
