import { isIP } from "node:net";
import type { MailServer } from "../core/mail-settings.ts";
import type { NoticeResult } from "../core/notice.ts";
import { storableText } from "../core/storable-text.ts";
import { SECOND_MS } from "../core/time.ts";

export type Mail = {
  /** The notice. A mail that is sent again after a crash has the same Message-ID, so that a mailbox can tell. */
  readonly id: string;
  readonly to: string;
  readonly subject: string;
  readonly text: string;
};

/** Sends mail through the operator's mail server. It never throws: where a mail was not taken, the result says why. */
export type Mailer = { send(mail: Mail): Promise<NoticeResult> };

export type MailerOptions = {
  readonly server: MailServer;
  readonly from: string;
  /** A certificate in PEM that is trusted in place of those of the system. */
  readonly ca?: string;
  /** Where the server is; by default the address of its name. */
  readonly address?: string;
  /** The time limit of each step with the server: connection, greeting and every answer. */
  readonly timeoutMs?: number;
};

/** How many characters of what the server said are kept: an answer may repeat what was sent. */
const ANSWER_CHARACTERS = 500;

/** A server that never ends must end before the attempt counts as cut off. */
const ALL_MS_MAX = 60 * SECOND_MS;

/** The server's certificate is always verified, unless it is on this machine and spoken to without TLS. */
export function createMailer({
  server,
  from,
  ca,
  address,
  timeoutMs = 15 * SECOND_MS,
}: MailerOptions): Mailer {
  const domain = from.slice(from.lastIndexOf("@") + 1);
  return {
    async send({ id, to, subject, text }) {
      const startedAt = performance.now();
      const took = () => Math.round(performance.now() - startedAt);
      // Loaded at the first mail: most commands send none.
      const { createTransport } = await import("nodemailer");
      const transport = createTransport({
        host: address ?? server.host,
        port: server.port,
        secure: server.tls === "from the start",
        requireTLS: server.tls === "starttls",
        ignoreTLS: server.tls === "none",
        ...(server.user !== null && { auth: { user: server.user, pass: server.password ?? "" } }),
        tls: {
          minVersion: "TLSv1.2",
          ...(ca !== undefined && { ca }),
          ...(isIP(server.host) === 0 && { servername: server.host }),
        },
        connectionTimeout: timeoutMs,
        greetingTimeout: timeoutMs,
        socketTimeout: timeoutMs,
        disableFileAccess: true,
        disableUrlAccess: true,
      });
      const mail = {
        from: { name: "Holdfast", address: from },
        // As an address, so that no comma or bracket in it makes two.
        to: { name: "", address: to },
        ...{ subject, text, messageId: `<${id}@${domain}>` },
        headers: { "Auto-Submitted": "auto-generated" },
      };
      try {
        const sent = await withinTime(transport.sendMail(mail), ALL_MS_MAX);
        return { outcome: "delivered", answer: cut(sent.response), durationMs: took() };
      } catch (error) {
        return { ...failureOf(error), durationMs: took() };
      } finally {
        transport.close();
      }
    },
  };
}

async function withinTime<Value>(work: Promise<Value>, ms: number): Promise<Value> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => late.reject(new Error("timeout")), ms);
  try {
    return await Promise.race([work, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}

/** A receiver or text that the server will never take is not tried again. Anything else may be corrected: also a wrong password. */
function failureOf(error: unknown): Pick<NoticeResult, "outcome" | "answer"> {
  const { code, responseCode, response, message } = error as {
    readonly code?: unknown;
    readonly responseCode?: unknown;
    readonly response?: unknown;
    readonly message?: unknown;
  };
  const isRefused = code === "EENVELOPE" || code === "EMESSAGE";
  const isForGood = typeof responseCode === "number" && responseCode >= 500 && isRefused;
  const said = typeof response === "string" ? response : [code, message].filter(Boolean).join(": ");
  return { outcome: isForGood ? "never" : "failed", answer: cut(said) };
}

const cut = (text: string): string => storableText(text.slice(0, ANSWER_CHARACTERS));
