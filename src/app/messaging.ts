import type { Config, Secrets } from "../config.ts";
import type { OwnListeners } from "../platform/addresses.ts";
import { createBotApi } from "../platform/bot-api.ts";
import { createFaultLog, logError, logInfo } from "../platform/log.ts";
import { steadyNow } from "../platform/steady-clock.ts";
import type { Messaging } from "../services/context.ts";
import { createIntake } from "../services/messaging/intake.ts";

/** The bot that people chat with, from the configuration; null where it has no token. */
export function messagingWith(
  { messagingUrl: baseUrl, allowNetworks }: Config,
  { messagingToken: token, messagingSecret }: Secrets,
  ownListeners: OwnListeners,
): Messaging | null {
  if (token === null) return null;
  const pause = (ms: number) => Bun.sleep(ms);
  const logSeldom = createFaultLog((message, _, fields) => logInfo(message, fields), steadyNow);
  return {
    bot: createBotApi({ baseUrl, token, allowNetworks, ownListeners, monotonicNow: steadyNow, pause }),
    hears: messagingSecret !== null,
    intake: createIntake(steadyNow, (error) => logError("an update of the messaging bot failed", error)),
    onIgnored: (why) => logSeldom("an update of the messaging bot was ignored", why, { why }),
  };
}
