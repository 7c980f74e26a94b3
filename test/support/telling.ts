import type { NoticeResult } from "../../src/core/notice.ts";
import type { Mail } from "../../src/platform/mailer.ts";
import type { Context } from "../../src/services/context.ts";
import { deliverNotices } from "../../src/services/notices/deliver.ts";
import { createDeliverySlots } from "../../src/services/webhooks/slots.ts";
import { noFault } from "./no-fault.ts";

/** Mail that goes nowhere: what was sent, and what the server says to it. */
export function createTelling() {
  const sent: Mail[] = [];
  const answers: NoticeResult[] = [];
  const notices: Context["notices"] = {
    email: {
      async send(mail) {
        sent.push(mail);
        return answers.shift() ?? { outcome: "delivered", answer: "250 ok", durationMs: 3 };
      },
    },
    slots: createDeliverySlots(),
  };
  return {
    notices,
    /** What was sent since the last call. */
    sent: (): readonly Mail[] => sent.splice(0),
    /** What the server says to the next mails. */
    answer: (...next: readonly NoticeResult[]): void => void answers.push(...next),
    /** Makes the attempts that are due, and waits for their end. */
    async deliver(ctx: Context): Promise<void> {
      await deliverNotices(ctx, noFault);
      await Promise.all(notices.slots.underWay());
    },
  };
}
