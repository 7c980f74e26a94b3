import type { Words } from "../../core/notice.ts";
import type { Mailer } from "../../platform/mailer.ts";
import type { SendNotice } from "../context.ts";

/** Sends a notice as a mail of plain text. */
export const mailSender =
  (mailer: Mailer): SendNotice =>
  ({ id }, { email: to }, words) =>
    mailer.send({ id, to, subject: words.subject, text: textOf(words) });

const textOf = ({ lines, link, why }: Words): string => `${[...lines, "", link, "", "--", why].join("\n")}\n`;
