import type { Config, Secrets } from "../config.ts";
import { createMailer } from "../platform/mailer.ts";
import type { Context, SendNotice, Telling } from "../services/context.ts";
import { chatSender } from "../services/messaging/send.ts";
import { mailSender } from "../services/notices/mail.ts";
import { createDeliverySlots } from "../services/webhooks/slots.ts";

/** How many notices of a channel are on their way at once, in all and of one organisation. */
const ALL_MAX = 16;
const OF_ONE_MAX = 2;

/** By what people are told of things, from the configuration. */
export const tellingWith = (
  config: Config,
  { smtp }: Secrets,
  baseUrl: string,
  { messaging, ...ctx }: Pick<Context, "store" | "newId" | "messaging">,
): Telling => {
  const from = config.mailFrom ?? `holdfast@${new URL(baseUrl).hostname}`;
  return {
    email: channelOf(smtp === null ? null : mailSender(createMailer({ server: smtp, from }))),
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
