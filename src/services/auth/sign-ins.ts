import { type AuthSession, signInIdOf } from "../../core/auth-session.ts";
import type { Client } from "../../core/client.ts";
import { isRefusal, type Refusal, refuse } from "../../core/errors.ts";
import { ACCESS, type PersonCaller } from "../../core/roles.ts";
import { listResource } from "../../resources/list.ts";
import { type SignInResource, signInResource } from "../../resources/sign-in.ts";
import type { Reader } from "../../store/reader.ts";
import { type Audited, executeAudited } from "../audited.ts";
import { callerNow, credentialOf } from "../caller-now.ts";
import type { Context } from "../context.ts";
import { endSignIns } from "../end-credentials.ts";
import { personOf } from "./person.ts";

/** A list shows those that end last. */
const LISTED_MAX = 100;

/** What is not over, with the one that asks marked. */
export const signInsOf = async (
  reader: Reader,
  userId: string,
  { now, current }: { readonly now: number; readonly current: string | null },
) =>
  listResource(
    (await reader.authSessions.of(userId, now, LISTED_MAX)).map((session) =>
      signInResource(session, current),
    ),
  );

/** The caller's own sign-ins. */
export function listOwnSignIns(ctx: Context, caller: PersonCaller) {
  return ctx.store.read(async (reader) => {
    const user = await personOf(reader, caller, ACCESS.keepOwnSignIn);
    if (isRefusal(user)) return user;
    return signInsOf(reader, user.id, { now: ctx.now(), current: caller.signInHash });
  });
}

/** The sign-in of that id, if it has not ended; else why not. */
export const liveSignIn = (
  sessions: readonly AuthSession[],
  id: string,
  now: number,
): AuthSession | Refusal =>
  sessions.find((session) => signInIdOf(session) === id && session.expiresAt > now) ??
  refuse("sign_in_not_found", `There is no sign-in ${id}, or it has ended.`);

/** Ends one of the caller's own sign-ins, which may be the one that asks. */
export async function endOwnSignIn(
  ctx: Context,
  caller: PersonCaller,
  id: string,
  client: Client,
): Promise<SignInResource | Refusal> {
  const ended = await executeAudited(
    ctx,
    { kind: "user", id: caller.userId },
    {
      scope: caller,
      needs: { ...credentialOf(caller), userSessions: caller.userId },
      decide(snapshot, now): Audited<SignInResource> {
        const present = callerNow(caller, ACCESS.keepOwnSignIn, snapshot, now);
        if (isRefusal(present)) return { answer: present };
        const session = liveSignIn(snapshot.userSessions, id, now);
        if (isRefusal(session)) return { answer: session };
        const answer = signInResource(session, caller.signInHash);
        return {
          answer,
          put: endSignIns([session], now),
          entries: [{ action: "user.signed_out", subject: caller.userId, before: answer, after: null }],
        };
      },
    },
  );
  if (isRefusal(ended)) return ended;
  ctx.signInLog.ended({
    ...{ client, userId: caller.userId, signInIds: [ended.id] },
    ...{ why: "signed out", endedBy: caller.userId },
  });
  return ended;
}
