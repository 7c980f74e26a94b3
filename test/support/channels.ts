import type { Telling } from "../../src/services/context.ts";
import { createDeliverySlots } from "../../src/services/webhooks/slots.ts";

/** By what people are told of things in a test: by the channels that are given, and no other. */
export const tellingBy = ({
  email = null,
  push = null,
  messaging = null,
}: {
  readonly [Name in keyof Telling]?: Telling[Name]["send"];
}): Telling => ({
  email: { send: email, slots: createDeliverySlots() },
  push: { send: push, slots: createDeliverySlots() },
  messaging: { send: messaging, slots: createDeliverySlots() },
});
