import type { Refusal } from "../../core/errors.ts";
import { ACCESS, type Mode, type PersonCaller } from "../../core/roles.ts";
import type { Decision } from "../../store/store.ts";
import { callerNow, credentialOf } from "../caller-now.ts";
import type { Context } from "../context.ts";

/** Moves a person's sign-in to the other mode, with all that its cookie does from then on. */
export function switchMode(
  ctx: Context,
  caller: PersonCaller,
  mode: Mode,
): Promise<{ readonly mode: Mode } | Refusal> {
  return ctx.store.execute({
    scope: caller,
    needs: credentialOf(caller),
    decide(snapshot, now): Decision<{ readonly mode: Mode }> {
      const present = callerNow(caller, ACCESS.readConsole, snapshot, now);
      if ("refused" in present) return { answer: present };
      const { callerSession: session } = snapshot;
      if (!session || session.mode === mode) return { answer: { mode } };
      const put = [{ kind: "authSession", before: session, row: { ...session, mode } }] as const;
      return { answer: { mode }, change: { put } };
    },
  });
}
