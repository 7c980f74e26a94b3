import { type Refusal, refuse } from "../core/errors.ts";
import { HOUR_MS, MINUTE_MS } from "../core/time.ts";
import type { Idempotency } from "../services/idempotency.ts";

/** How long a form that was sent is remembered. What moves money is remembered in the ledger too, and far longer. */
const REMEMBERED_MS = HOUR_MS;
const REMEMBERED_MAX = 10_000;
/** How long an answer with a secret is given to a second click. After that it is shown to nobody again. */
const SECRET_MS = MINUTE_MS;

export type Submissions = ReturnType<typeof createSubmissions>;

/**
 * The forms that were sent, so that a second click does nothing again and gets the first one's answer. What was refused moved
 * nothing and is forgotten, so that it may be sent again.
 */
export function createSubmissions() {
  const sent = new Map<string, { fingerprint: string; at: number; answer: Promise<unknown> }>();
  /** Those of them whose answer has a secret, oldest first. */
  const secrets = new Set<string>();

  function forgetSecrets(now: number): void {
    for (const name of secrets) {
      const kept = sent.get(name);
      if (kept && now - kept.at < SECRET_MS) return;
      secrets.delete(name);
      if (kept) sent.set(name, { ...kept, answer: Promise.resolve(ALREADY_SHOWN) });
    }
  }

  function forgetOld(now: number): void {
    for (const [key, { at }] of sent) {
      if (now - at < REMEMBERED_MS && sent.size < REMEMBERED_MAX) return;
      sent.delete(key);
    }
  }

  return {
    /**
     * @param whose the sign-in that sends the form: a key counts within it alone
     * @param isDone whether the answer did something, so that it must not be done again
     * @param hasSecret whether the answer has a secret, which is shown once
     */
    async once<Answer>(
      whose: string,
      { key, fingerprint, now }: Idempotency & { readonly now: number },
      work: () => Promise<Answer | Refusal>,
      { isDone, hasSecret }: Readonly<Record<"isDone" | "hasSecret", (answer: Answer | Refusal) => boolean>>,
    ): Promise<Answer | Refusal> {
      const name = `${whose} ${key}`;
      forgetSecrets(now);
      const known = sent.get(name);
      if (known) {
        return known.fingerprint === fingerprint ? (known.answer as Promise<Answer | Refusal>) : ALREADY_SENT;
      }
      forgetOld(now);
      const answer = work();
      sent.set(name, { fingerprint, at: now, answer });
      if (!(await answer.then(isDone, () => false))) sent.delete(name);
      else if (hasSecret(await answer)) secrets.add(name);
      return answer;
    },
  };
}

const ALREADY_SHOWN = refuse(
  "idempotency_key_reused",
  "This form was sent already, and its secret was shown then. It is not shown again: make another one.",
);

const ALREADY_SENT = refuse(
  "idempotency_key_reused",
  "This form was sent already, with other values in it. Open it again to send another.",
);
