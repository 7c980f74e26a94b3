import type { Target } from "./load.ts";
import { opening } from "./opening.ts";

const SENT_AT_ONCE = 64;

/** Does the work `count` times, several at once. */
export async function each(count: number, work: () => Promise<unknown>): Promise<void> {
  let begun = 0;
  const worker = async () => {
    while (begun < count) {
      begun += 1;
      await work();
    }
  };
  await Promise.all(Array.from({ length: Math.min(SENT_AT_ONCE, count) }, worker));
}

/** Posts with a new key. Throws where it is refused. */
export async function post(
  { url, secret }: Target,
  path: string,
  body: object,
): Promise<{ readonly id: string; readonly state: string }> {
  const response = await fetch(`${url}${path}`, {
    method: "POST",
    headers: {
      Authorization: `Bearer ${secret}`,
      "Content-Type": "application/json",
      "Idempotency-Key": crypto.randomUUID(),
    },
    body: JSON.stringify(body),
  });
  if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
  return (await response.json()) as { readonly id: string; readonly state: string };
}

export const openMany = (target: Target, count: number, deadline: number): Promise<void> =>
  each(count, () => post(target, "/v1/warrants", opening(deadline)));
