import { isRefusal, type Refusal, refuse, refuseField } from "../../core/errors.ts";
import {
  type BrowserSubscription,
  PUSH_SUBSCRIPTIONS_MAX,
  type PushSubscription,
  refuseSubscription,
} from "../../core/push.ts";
import { ACCESS, type PersonCaller } from "../../core/roles.ts";
import { type Audited, executeAudited, type Recording } from "../audited.ts";
import { callerNow, credentialOf } from "../caller-now.ts";
import type { Context } from "../context.ts";
import { devicesEntry } from "../end-credentials.ts";
import { refuseText } from "../fields.ts";

/** The browsers in which a person is notified by web push. */

export type DeviceInput = BrowserSubscription & {
  /** What it is called in the list. */
  readonly name: string;
};

/** From now on the caller is notified in this browser. One that is in the caller's list stays as it is. */
export async function addDevice(
  ctx: Context,
  caller: PersonCaller,
  { name, ...given }: DeviceInput,
): Promise<PushSubscription | Refusal> {
  const refused =
    refuseSubscription(given) ?? refuseText("device_name", name) ?? (await refusePoint(ctx, given));
  if (refused) return refused;
  const { userId, organisationId } = caller;
  const id = ctx.newId("pushSubscription");
  const { endpoint, p256dh } = given;
  const encryptedAuth = ctx.vault.encrypt(given.auth, id);
  return executeAudited(
    ctx,
    { kind: "user", id: userId },
    {
      scope: caller,
      needs: { ...credentialOf(caller), pushSubscriptions: userId, pushSubscriptionAt: endpoint },
      decide(snapshot, now): Audited<PushSubscription> {
        const { pushSubscriptions: own, pushSubscriptionAt: known } = snapshot;
        const present = callerNow(caller, ACCESS.keepOwnSignIn, snapshot, now);
        if (isRefusal(present)) return { answer: present };
        if (known?.userId === userId) return { answer: known };
        if (known)
          return { answer: refuse("already_exists", "endpoint: this browser notifies another person.") };
        if (own.length >= PUSH_SUBSCRIPTIONS_MAX) return { answer: tooMany() };
        const row: PushSubscription = {
          ...{ id, organisationId, userId, endpoint, p256dh, encryptedAuth, name },
          ...{ createdAt: now, deliveredAt: null },
        };
        return {
          answer: row,
          put: [{ kind: "pushSubscription", before: null, row }],
          entries: [devicesEntry(userId, [], [row])],
        };
      },
    },
  );
}

/** The caller is not notified in that browser any more. */
export const removeDevice = (ctx: Context, caller: PersonCaller, id: string): Promise<null | Refusal> =>
  executeAudited(
    ctx,
    { kind: "user", id: caller.userId },
    {
      scope: caller,
      needs: { ...credentialOf(caller), pushSubscriptions: caller.userId },
      decide(snapshot, now): Audited<null> {
        const { pushSubscriptions: own } = snapshot;
        const present = callerNow(caller, ACCESS.keepOwnSignIn, snapshot, now);
        if (isRefusal(present)) return { answer: present };
        const isRemoved = own.some((device) => device.id === id);
        return isRemoved ? without(caller.userId, own, [id]) : { answer: deviceNotFound() };
      },
    },
  );

/** Forgets browsers of a person that their push services no longer know. */
export const forgetDevices = (
  ctx: Recording,
  { userId, organisationId }: Pick<PushSubscription, "userId" | "organisationId">,
  ids: readonly string[],
): Promise<null | Refusal> =>
  executeAudited(
    ctx,
    { kind: "user", id: userId },
    {
      scope: { organisationId, mode: "live" },
      needs: { pushSubscriptions: userId },
      decide: ({ pushSubscriptions: own }): Audited<null> => without(userId, own, ids),
    },
  );

function without(userId: string, own: readonly PushSubscription[], ids: readonly string[]): Audited<null> {
  const removed = own.filter(({ id }) => ids.includes(id));
  if (removed.length === 0) return { answer: null };
  return {
    answer: null,
    put: [],
    deleted: removed.map((row) => ({ kind: "pushSubscription", row })),
    entries: [devicesEntry(userId, removed, [])],
  };
}

/** Whether a message can be encrypted for it shows in the attempt alone. */
const refusePoint = ({ webPush }: Context, keys: BrowserSubscription): Promise<Refusal | null> =>
  webPush.encrypt("", keys).then(
    () => null,
    () => refuseField("p256dh", "must be a public key of P-256, which is a point of its curve"),
  );

const tooMany = (): Refusal =>
  refuseField("endpoint", `you are notified on ${PUSH_SUBSCRIPTIONS_MAX} devices already; remove one first`);

const deviceNotFound = (): Refusal => refuseField("device", "is not one of yours, or was removed already");
