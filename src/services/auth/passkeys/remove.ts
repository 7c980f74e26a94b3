import { isRefusal, type Refusal } from "../../../core/errors.ts";
import { ACCESS, type Caller, type PersonCaller } from "../../../core/roles.ts";
import { recordingAct } from "../../admin/acts.ts";
import type { Context } from "../../context.ts";
import { credentialOf, refuseEndedCaller } from "../../intent.ts";
import { personOf } from "../person.ts";
import { passkeyNotFound, passkeyResource } from "./resources.ts";

/** Removes one of the caller's own passkeys; what it signed before and was not used is void. Null where it is done. */
export async function removePasskey(ctx: Context, caller: Caller, id: string): Promise<Refusal | null> {
  const user = personOf(ctx, caller, ACCESS.keepOwnSignIn);
  if (isRefusal(user)) return user;
  const recordAct = recordingAct(ctx, caller as PersonCaller, "passkey.removed");
  const now = ctx.now();
  return ctx.store.execute<null>({
    scope: caller,
    needs: { ...credentialOf(caller), passkeysOf: user.id },
    decide: (snapshot) => {
      const ended = refuseEndedCaller(caller, ACCESS.keepOwnSignIn, snapshot, now);
      if (ended) return { answer: ended };
      const passkey = snapshot.passkeys.find((own) => own.id === id);
      if (!passkey) return { answer: passkeyNotFound() };
      const before = { ...passkeyResource(passkey), user_id: user.id };
      const act = recordAct(user.organisationId, passkey.id, before, null);
      return { answer: null, change: { removesPasskeys: [passkey.id], rows: [act] } };
    },
  });
}
