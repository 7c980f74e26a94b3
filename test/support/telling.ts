import type { NoticeResult } from "../../src/core/notice.ts";
import type { Mail } from "../../src/platform/mailer.ts";
import type { Context, Telling } from "../../src/services/context.ts";
import { deliverNotices } from "../../src/services/notices/deliver.ts";
import { mailSender } from "../../src/services/notices/mail.ts";
import { tellingBy } from "./channels.ts";
import { noFault } from "./no-fault.ts";

/** Waits for the attempts that are under way. */
export const attemptsOf = (notices: Telling) =>
  Promise.all(Object.values(notices).flatMap(({ slots }) => slots.underWay()));

/** Mail that goes nowhere: what was sent, and what the server says to it. */
export function createTelling() {
  const sent: Mail[] = [];
  const answers: NoticeResult[] = [];
  const email = mailSender({
    async send(mail) {
      sent.push(mail);
      return answers.shift() ?? { outcome: "delivered", answer: "250 ok", durationMs: 3 };
    },
  });
  const notices = tellingBy({ email });
  return {
    notices,
    email,
    /** What was sent since the last call. */
    sent: (): readonly Mail[] => sent.splice(0),
    /** What the server says to the next mails. */
    answer: (...next: readonly NoticeResult[]): void => void answers.push(...next),
    /** Makes the attempts that are due, and waits for their end. */
    async deliver(ctx: Context): Promise<void> {
      await deliverNotices(ctx, noFault);
      await attemptsOf(notices);
    },
  };
}
