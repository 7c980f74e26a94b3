import type { Config, Secrets } from "../config.ts";
import { defaultPushContact } from "../core/push.ts";
import { createMailer } from "../platform/mailer.ts";
import type { Context, SendNotice, Telling } from "../services/context.ts";
import { chatSender } from "../services/messaging/send.ts";
import { mailSender } from "../services/notices/mail.ts";
import { type Pushing, pushSender } from "../services/notices/push.ts";
import { createDeliverySlots } from "../services/webhooks/slots.ts";

/** How many notices of a channel are on their way at once, in all and of one organisation. */
const ALL_MAX = 16;
const OF_ONE_MAX = 2;

type TellingParts = Omit<Pushing, "contact"> & Pick<Context, "messaging" | "baseUrl">;

/** By what people are told of things, from the configuration. */
export const tellingWith = (
  config: Config,
  { smtp }: Secrets,
  { messaging, baseUrl, ...ctx }: TellingParts,
): Telling => {
  const from = config.mailFrom ?? `holdfast@${new URL(baseUrl).hostname}`;
  const contact = config.pushContact ?? defaultPushContact(baseUrl, config.mailFrom);
  return {
    email: channelOf(smtp === null ? null : mailSender(createMailer({ server: smtp, from }))),
    push: channelOf(pushSender({ ...ctx, contact })),
    messaging: channelOf(messaging && chatSender(ctx, messaging.bot)),
  };
};

/** Allows no further notice, and no update of the bot. Each resolves when none of its kind is under way. */
export const closeTelling = ({
  notices,
  messaging,
}: Pick<Context, "notices" | "messaging">): readonly Promise<void>[] => [
  ...Object.values(notices).map(({ slots }) => slots.close()),
  ...(messaging ? [messaging.intake.close()] : []),
];

const channelOf = (send: SendNotice | null): Telling[keyof Telling] => ({
  send,
  slots: createDeliverySlots(ALL_MAX, OF_ONE_MAX),
});
