import { isRefusal, type Refusal, refuse } from "../../core/errors.ts";
import { CHANNELS, type Channel, newNotice } from "../../core/notice.ts";
import { ACCESS, type PersonCaller } from "../../core/roles.ts";
import { MINUTE_MS } from "../../core/time.ts";
import type { Decision } from "../../store/store.ts";
import { callerNow, credentialOf } from "../caller-now.ts";
import type { Context } from "../context.ts";
import { channelsTo, reachNeeds, reachOf } from "./reach.ts";

/** One in so long is enough to try. */
const AGAIN_MS = MINUTE_MS;

/** Makes a notice to the caller by each channel by which they hear of things, and answers these channels. */
export async function makeTestNotice(
  ctx: Context,
  caller: PersonCaller,
): Promise<readonly Channel[] | Refusal> {
  const { userId, organisationId } = caller;
  const ids = new Map(CHANNELS.map((channel) => [channel, ctx.newId("notice")]));
  const subject = `test ${userId}`;
  return ctx.store.execute({
    scope: caller,
    needs: {
      ...credentialOf(caller),
      ...reachNeeds(userId),
      ...{ user: userId, newestNotice: subject },
    },
    decide(snapshot, now): Decision<readonly Channel[]> {
      const present = callerNow(caller, ACCESS.keepOwnSignIn, snapshot, now);
      if (isRefusal(present)) return { answer: present };
      const { user, newestNotice } = snapshot;
      if (!user) throw new Error("a person's command without its person");
      // A time in the future was written by a clock that was ahead.
      if (newestNotice !== null && newestNotice <= now && now - newestNotice < AGAIN_MS)
        return {
          answer: refuse(
            "validation_failed",
            "You asked for one less than a minute ago. See in the list what became of it.",
          ),
        };
      const channels = channelsTo(ctx, { user, ...reachOf(snapshot) });
      if (channels.length === 0)
        return {
          answer: refuse(
            "validation_failed",
            "No channel that is chosen reaches you. Choose a channel, a device or a chat first.",
          ),
        };
      const put = channels.map((channel) => {
        const row = newNotice({
          ...{ id: ids.get(channel) ?? "", organisationId, mode: "live", userId, channel },
          ...{ subject, about: { kind: "test" }, createdAt: now },
        });
        return { kind: "notice", before: null, row } as const;
      });
      return { answer: channels, change: { put } };
    },
  });
}
