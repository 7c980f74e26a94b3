import { isRefusal } from "../../core/errors.ts";
import type { Notice, NoticeResult, Words } from "../../core/notice.ts";
import type { PushSubscription } from "../../core/push.ts";
import { DAY_MS, SECOND_MS } from "../../core/time.ts";
import type { AttemptResult } from "../../core/webhook.ts";
import type { WebhookSender } from "../../platform/webhook-sender.ts";
import type { Put } from "../../store/change.ts";
import type { Decision } from "../../store/store.ts";
import type { Context, SendNotice } from "../context.ts";
import { forgetDevices } from "./devices.ts";

/** What pushes are sent with. */
export type Pushing = Pick<Context, "store" | "newId" | "vault" | "now" | "webPush"> & {
  /** How the operator of a push service reaches the operator of this instance. */
  readonly contact: string;
  readonly post: WebhookSender["send"];
};

/** How long a push service keeps a message for a browser that is away. Then comes the next reminder. */
const TTL_SECONDS = DAY_MS / SECOND_MS;
/** Push services take 4,096 bytes. A notification shows a few lines. */
const BODY_CHARACTERS = 600;
/** The push service has forgotten the browser, and will never know it again. */
const GONE = new Set([404, 410]);

type Answered = { readonly device: PushSubscription; readonly result: AttemptResult };

/**
 * Sends a notice to all browsers of its person, one after the other, so that a push service that hangs takes one connection. It
 * is delivered where the push service of one of them took it. Those that are gone are forgotten.
 */
export const pushSender =
  (pushing: Pushing): SendNotice =>
  async (notice, user, words) => {
    const devices = await pushing.store.read(({ notices }) => notices.pushSubscriptionsOf(user.id));
    const text = messageOf(notice, words);
    const answered: Answered[] = [];
    // Those that were reached last come first: one that hangs may be gone for good.
    const byReached = devices.toSorted((one, other) => (other.deliveredAt ?? 0) - (one.deliveredAt ?? 0));
    for (const device of byReached)
      answered.push({ device, result: await pushTo(pushing, device, notice, text) });
    await recordTaken(pushing, notice, answered);
    const gone = answered.filter(isGone).map(({ device }) => device.id);
    if (gone.length > 0) await forgetDevices(pushing, notice, gone);
    return resultOf(answered);
  };

/** What the service worker shows (`src/console/push-worker.js`). */
const messageOf = ({ id }: Notice, { subject, lines, link }: Words): string =>
  JSON.stringify({
    ...{ tag: id, title: subject, link },
    body: lines.filter(Boolean).join("\n").slice(0, BODY_CHARACTERS).toWellFormed(),
  });

async function pushTo(
  { vault, webPush, contact, post, now }: Pushing,
  { id, endpoint, p256dh, encryptedAuth }: PushSubscription,
  notice: Notice,
  text: string,
): Promise<AttemptResult> {
  const body = await webPush.encrypt(text, { p256dh, auth: vault.decrypt(encryptedAuth, id) });
  const headers = {
    authorization: await webPush.authorization(endpoint, contact, now()),
    ...{ "content-encoding": "aes128gcm", "content-type": "application/octet-stream" },
    ttl: String(TTL_SECONDS),
    urgency: isUrgent(notice) ? "high" : "normal",
    // Sent again, it replaces itself where the browser is still away.
    topic: notice.id,
  };
  return post({ url: endpoint, headers, body });
}

/** A person is asked to decide. */
const isUrgent = ({ about }: Notice): boolean => about.kind === "escalations" || about.kind === "disputes";

const isTaken = ({ result: { code } }: Answered): boolean => code !== null && code >= 200 && code <= 299;
const isGone = ({ result: { code } }: Answered): boolean => code !== null && GONE.has(code);

/** Keeps when each browser was last reached. */
async function recordTaken(
  { store }: Pushing,
  { organisationId, mode, userId }: Notice,
  answered: readonly Answered[],
): Promise<void> {
  const taken = new Set(answered.filter(isTaken).map(({ device }) => device.id));
  if (taken.size === 0) return;
  const recorded = await store.execute({
    scope: { organisationId, mode },
    needs: { pushSubscriptions: userId },
    decide({ pushSubscriptions }, now): Decision<null> {
      const put = pushSubscriptions
        .filter(({ id }) => taken.has(id))
        .map((before): Put => ({ kind: "pushSubscription", before, row: { ...before, deliveredAt: now } }));
      return { answer: null, change: { put } };
    },
  });
  if (isRefusal(recorded)) throw new Error(recorded.message);
}

/** The answer has the status of each push service, or why there was none. What else it said is not kept: it may name the endpoint. */
function resultOf(answered: readonly Answered[]): NoticeResult {
  if (answered.every(isGone))
    return { outcome: "never", answer: answered.length === 0 ? "no_device" : "gone", durationMs: null };
  const said = answered.map(({ result }) => result.code ?? result.responseStart).join(", ");
  return {
    outcome: answered.some(isTaken) ? "delivered" : "failed",
    answer: `${answered.filter(isTaken).length} of ${answered.length} took it: ${said}`,
    durationMs: answered.reduce((sum, { result }) => sum + (result.durationMs ?? 0), 0),
  };
}
