import type { Client } from "../../../core/client.ts";
import { isRefusal, type Refusal } from "../../../core/errors.ts";
import { ACCESS, type Caller } from "../../../core/roles.ts";
import { passkeyResource } from "../../../resources/passkey.ts";
import { type Audited, executeAudited } from "../../audited.ts";
import { callerNow, credentialOf } from "../../caller-now.ts";
import type { Context } from "../../context.ts";
import { confirmPassword } from "../confirm-password.ts";
import { personOf } from "../person.ts";
import { passkeyNotFound } from "./refusals.ts";

/**
 * Removes one of the caller's own passkeys. The password is asked for again, as when one is added. Approvals that it signed and that are not used yet become void.
 * Null on success.
 */
export async function removePasskey(
  ctx: Context,
  caller: Caller,
  { id, password }: { readonly id: string; readonly password: string },
  client: Client,
): Promise<Refusal | null> {
  const user = await ctx.store.read((reader) => personOf(reader, caller, ACCESS.keepOwnSignIn));
  if (isRefusal(user)) return user;
  const wrong = await confirmPassword(ctx, user, password, client);
  if (wrong) return wrong;
  return executeAudited(
    ctx,
    { kind: "user", id: user.id },
    {
      scope: caller,
      needs: { ...credentialOf(caller), passkeys: user.id },
      decide(snapshot, now): Audited<null> {
        const present = callerNow(caller, ACCESS.keepOwnSignIn, snapshot, now);
        if (isRefusal(present)) return { answer: present };
        const passkey = snapshot.passkeys.find((own) => own.id === id);
        if (!passkey) return { answer: passkeyNotFound() };
        const before = { ...passkeyResource(passkey), user_id: user.id };
        return {
          answer: null,
          put: [],
          deleted: [{ kind: "passkey", row: passkey }],
          entries: [{ action: "passkey.removed", subject: passkey.id, before, after: null }],
        };
      },
    },
  );
}
