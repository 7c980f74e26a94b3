import { expect, test } from "bun:test";
import { ConnectionLost } from "../../src/store/postgres/client.ts";
import { type Connected, untilLost } from "../../src/store/postgres/replica-connections.ts";

const connected = () => ({ waiting: new Set(), lost: null }) as unknown as Connected;

test("what was answered, or has failed, leaves nothing behind", async () => {
  const now = connected();
  expect(await untilLost(now, Promise.resolve(7))).toBe(7);
  await expect(untilLost(now, Promise.reject(new Error("it failed")))).rejects.toThrow("it failed");
  expect(now.waiting.size).toBe(0);
});

test("what is asked of lost connections fails, and so does what waits for them", async () => {
  const now = connected();
  const never = new Promise<never>(() => {});
  const waiting = untilLost(now, never);
  const lost = new ConnectionLost("lost");
  now.lost = lost;
  for (const end of now.waiting) end(lost);
  await expect(waiting).rejects.toBe(lost);
  await expect(untilLost(now, never)).rejects.toBe(lost);
});
