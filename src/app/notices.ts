import type { Config, Secrets } from "../config.ts";
import { createMailer } from "../platform/mailer.ts";
import type { Telling } from "../services/context.ts";
import { createDeliverySlots } from "../services/webhooks/slots.ts";

/** How many notices are on their way at once, in all and of one organisation by one channel. */
const ALL_MAX = 16;
const OF_ONE_MAX = 2;

/** By what people are told of things, from the configuration. */
export const tellingWith = (config: Config, secrets: Secrets, baseUrl: string): Telling => ({
  email:
    secrets.smtp === null
      ? null
      : createMailer({
          server: secrets.smtp,
          from: config.mailFrom ?? `holdfast@${new URL(baseUrl).hostname}`,
        }),
  slots: createDeliverySlots(ALL_MAX, OF_ONE_MAX),
});
