import type { Client } from "../../core/client.ts";
import { type Refusal, refuse } from "../../core/errors.ts";
import { authSessionResource } from "../../resources/auth-session.ts";
import { type Audited, executeAudited } from "../audited.ts";
import type { Context } from "../context.ts";
import { attemptSignIn } from "./attempt.ts";
import { type NewSession, newAuthSession, signedInEntry } from "./sign-in.ts";
import { newToken } from "./tokens.ts";

/** A link that signs a person in to the sandbox, once. Only the demo offers one: its organisation has nothing that is real. */
export function offerSignIn(ctx: Context, userId: string): string {
  const token = newToken(ctx);
  ctx.startLinks.add({ kind: "sign-in", userId }, token);
  return `${new URL(ctx.baseUrl).origin}/console/enter#${token}`;
}

/** Signs in whoever has such a link. One that is not good is `not_authenticated`, and counts as a failed sign-in of the address. */
export function signInByLink(ctx: Context, token: string, client: Client): Promise<NewSession | Refusal> {
  const attempt = { by: "one-time link", client, account: null, trusted: false, user: null } as const;
  return attemptSignIn(
    ctx,
    attempt,
    async () =>
      (await ctx.startLinks.use("sign-in", token, ({ userId }) => signInAs(ctx, userId, client))) ??
      uselessLink(),
  );
}

async function signInAs(ctx: Context, userId: string | null, client: Client): Promise<NewSession | Refusal> {
  const known = userId === null ? null : await ctx.store.read(({ users }) => users.get(userId));
  if (userId === null || !known) return uselessLink();
  const token = newToken(ctx);
  return executeAudited(
    ctx,
    { kind: "user", id: userId },
    {
      scope: { organisationId: known.organisationId, mode: "sandbox" },
      needs: { user: userId, passkeys: userId },
      decide({ user, organisation, passkeys }, now): Audited<NewSession> {
        if (!user) return { answer: uselessLink() };
        const session = newAuthSession(token, user, "sandbox", client, now);
        return {
          answer: { token, resource: authSessionResource(organisation, user, session, passkeys), session },
          put: [{ kind: "authSession", before: null, row: session }],
          entries: [signedInEntry(session, "one-time link")],
        };
      },
    },
  );
}

const uselessLink = (): Refusal =>
  refuse(
    "not_authenticated",
    "The link is unknown, used or out of date: it is good once, for 30 minutes. Sign in with the password instead.",
  );
