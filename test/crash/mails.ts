import assert from "node:assert/strict";
import { startMailServer } from "../support/mail-server.ts";
import { until } from "../support/until.ts";
import type { Look } from "./money-checks.ts";

/** A mail server, by which people hear of escalations. */

/** Whoever sent a notice may have been killed. The next one begins once it has the lease of the dead one. */
const SENT_MS = 45_000;

export type Mails = {
  /** Settings of a server that sends its mail here. */
  readonly settings: Readonly<Record<string, string>>;
  /** The ids of the notices that came, each as often as it came. */
  ids(): readonly string[];
  stop(): Promise<void>;
};

export async function startMails(): Promise<Mails> {
  const server = await startMailServer();
  return {
    settings: {
      HOLDFAST_SMTP_URL: `smtp://127.0.0.1:${server.port}`,
      HOLDFAST_MAIL_FROM: "holdfast@example.com",
    },
    ids: () => server.received.map(({ source }) => /^Message-ID: <([^@]+)@/im.exec(source)?.[1] ?? source),
    stop: server.close,
  };
}

type Kept = { readonly id: string; readonly status: string; readonly attempts: bigint };

/** Every mail is of a notice, no notice came more often than it was tried, what counts as delivered came, and none waits without end. */
export async function checkMails(look: Look, mails: Mails): Promise<void> {
  const before = Map.groupBy(mails.ids(), (id) => id);
  const notices = await look<Kept>("SELECT id, status, attempts FROM notices");
  const came = new Set(mails.ids());
  const attempts = new Map(notices.map((notice) => [notice.id, notice.attempts]));
  assert.deepEqual(
    [...before].filter(([id, mailed]) => mailed.length > (attempts.get(id) ?? 0n)),
    [],
    "mails that were not kept before they were sent",
  );
  assert.deepEqual(
    notices.filter(({ id, status }) => status === "delivered" && !came.has(id)),
    [],
    "notices that count as delivered, and never came",
  );
  assert.deepEqual(
    notices.filter(({ status }) => status === "exhausted"),
    [],
    "notices that were given up",
  );
  await until("no notice is overdue", async () => (await look(overdueAt(Date.now()))).length === 0, SENT_MS);
}

const overdueAt = (now: number): string =>
  `SELECT id FROM notices WHERE coalesce(claimed_until, next_attempt_at) < ${now}`;

/** The lines of the tally. */
export const MAILS_TALLY = ["notices mailed", "of them mailed again"] as const;

export function countMails(mails: Mails, count: (name: string, by: number) => void): void {
  const ids = mails.ids();
  const notices = new Set(ids).size;
  count("notices mailed", notices);
  count("of them mailed again", ids.length - notices);
}
