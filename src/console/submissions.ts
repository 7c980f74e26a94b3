import { isRefusal, type Refusal, refuse, refusedUnshared } from "../core/errors.ts";
import { HOUR_MS, MINUTE_MS } from "../core/time.ts";
import type { Context } from "../services/context.ts";
import type { Idempotency } from "../services/idempotency.ts";

/** How long a form that was sent is remembered. What moves money is remembered in the ledger too, and far longer. */
const REMEMBERED_MS = HOUR_MS;
const REMEMBERED_MAX = 10_000;
/** How long an answer with a secret is given to a second click. After that it is shown to nobody again. */
const SECRET_MS = MINUTE_MS;
/** How long instances that share a ledger remember together that a form was sent. */
const SHARED_MS = 10 * MINUTE_MS;

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
     * @param shared what the instance shares with others, where it does
     */
    async once<Answer>(
      whose: string,
      { key, fingerprint, now }: Idempotency & { readonly now: number },
      work: () => Promise<Answer | Refusal>,
      { isDone, hasSecret }: Readonly<Record<"isDone" | "hasSecret", (answer: Answer | Refusal) => boolean>>,
      shared: Context["shared"] = null,
    ): Promise<Answer | Refusal> {
      const name = `${whose} ${key}`;
      forgetSecrets(now);
      const known = sent.get(name);
      if (known) {
        return known.fingerprint === fingerprint ? (known.answer as Promise<Answer | Refusal>) : ALREADY_SENT;
      }
      forgetOld(now);
      const answer = shared ? onceOfAll(shared, `form ${name}`, work, isDone) : work();
      sent.set(name, { fingerprint, at: now, answer });
      if (!(await answer.then(isDone, () => false))) sent.delete(name);
      else if (hasSecret(await answer)) secrets.add(name);
      return answer;
    },
  };
}

/** The second click may come to another instance, which does not have the first one's answer. */
async function onceOfAll<Answer>(
  shared: NonNullable<Context["shared"]>,
  token: string,
  work: () => Promise<Answer | Refusal>,
  isDone: (answer: Answer | Refusal) => boolean,
): Promise<Answer | Refusal> {
  const isFirst = await shared.useOnce(token, SHARED_MS).catch(refusedUnshared);
  if (isFirst !== true) return isRefusal(isFirst) ? isFirst : SENT_ELSEWHERE;
  let done = false;
  try {
    const answer = await work();
    done = isDone(answer);
    return answer;
  } finally {
    if (!done) await shared.release(token).catch(refusedUnshared);
  }
}

const SENT_ELSEWHERE = refuse(
  "idempotency_key_reused",
  "This form was sent already. Open its page again to see what came of it. A secret is not shown again: make another one.",
);

const ALREADY_SHOWN = refuse(
  "idempotency_key_reused",
  "This form was sent already, and its secret was shown then. It is not shown again: make another one.",
);

const ALREADY_SENT = refuse(
  "idempotency_key_reused",
  "This form was sent already, with other values in it. Open it again to send another.",
);
