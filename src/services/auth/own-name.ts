import type { Refusal } from "../../core/errors.ts";
import { ACCESS, type PersonCaller } from "../../core/roles.ts";
import { userResource } from "../../resources/user.ts";
import { type Audited, executeAudited } from "../audited.ts";
import { callerNow, credentialOf } from "../caller-now.ts";
import type { Context } from "../context.ts";
import { refuseText } from "../fields.ts";

/** A person changes what they are called. */
export async function changeOwnName(
  ctx: Context,
  caller: PersonCaller,
  name: string,
): Promise<ReturnType<typeof userResource> | Refusal> {
  const refused = refuseText("name", name);
  if (refused) return refused;
  return executeAudited(
    ctx,
    { kind: "user", id: caller.userId },
    {
      scope: caller,
      needs: credentialOf(caller),
      decide(snapshot, now): Audited<ReturnType<typeof userResource>> {
        const present = callerNow(caller, ACCESS.keepOwnSignIn, snapshot, now);
        if ("refused" in present) return { answer: present };
        const { callerUser: user } = snapshot;
        if (!user) throw new Error("a person's command without its person");
        const before = userResource(user);
        if (user.name === name) return { answer: before };
        const row = { ...user, name };
        const after = userResource(row);
        return {
          answer: after,
          put: [{ kind: "user", before: user, row }],
          entries: [{ action: "user.renamed", subject: user.id, before, after }],
        };
      },
    },
  );
}
