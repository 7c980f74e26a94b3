import type { Client } from "../../core/client.ts";
import { isRefusal, type Refusal, refuse } from "../../core/errors.ts";
import { attemptSignIn } from "../auth/attempt.ts";
import { type NewSession, signIn } from "../auth/sign-in.ts";
import { newToken } from "../auth/tokens.ts";
import type { Context } from "../context.ts";
import { createFirstOrganisation, type OrganisationInput } from "./organisations.ts";

/** The first run: where there is no organisation yet, whoever reads the machine's log makes one. */

export const hasNoOrganisation = async ({ store }: Pick<Context, "store">): Promise<boolean> =>
  !(await store.read(({ organisations }) => organisations.any()));

/** The link with which the first organisation is made; null where there is one already, or another instance has made the link. */
export async function offerSetUp(ctx: Context): Promise<string | null> {
  if (!(await hasNoOrganisation(ctx))) return null;
  const token = newToken(ctx);
  if (!(await ctx.startLinks.offer({ kind: "set-up", userId: null }, token))) return null;
  // The token follows the `#`: browsers do not send that part, so no server logs it.
  return `${new URL(ctx.baseUrl).origin}/console/set-up#${token}`;
}

/**
 * Makes the first organisation and its owner, and signs the owner in to the sandbox. A link that is not good is
 * `not_authenticated`, and counts as a failed sign-in of the address. Where somebody has made an organisation meanwhile it is
 * `already_exists`.
 */
export async function setUp(
  ctx: Context,
  { token, ...input }: OrganisationInput & { readonly token: string },
  client: Client,
): Promise<NewSession | Refusal> {
  // Nobody guesses a link, so it has no account that could be held up.
  const attempt = { by: "one-time link", client, account: null, trusted: false, user: null } as const;
  const made = await attemptSignIn(
    ctx,
    attempt,
    async () =>
      (await ctx.startLinks.use("set-up", token, () => createFirstOrganisation(ctx, input))) ??
      uselessLink(ctx),
  );
  if (isRefusal(made)) return made;
  const { owner_email: email, owner_password: password } = input;
  return signIn(ctx, { email, password, mode: "sandbox" }, client);
}

/** A link that instances share outlives their starts, and there is no other while it is good. */
const uselessLink = ({ instances }: Context): Refusal =>
  refuse(
    "not_authenticated",
    `The set-up link is unknown, used or out of date: it is good once, for 30 minutes. ${
      instances.alone
        ? "Restart the service, whose log has a new one."
        : "The log of one of the instances has it. Restart one when those 30 minutes are over, and its log has a new one."
    }`,
  );
