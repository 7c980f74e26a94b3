export const LATE = Symbol("late");

/** Waits for a promise, but not for longer than this: then it is late. Bun's client waits without end where packets are lost. */
export async function inTime<Value>(promise: Promise<Value>, ms: number): Promise<Value | typeof LATE> {
  const late = Promise.withResolvers<typeof LATE>();
  const timer = setTimeout(late.resolve, ms, LATE);
  try {
    return await Promise.race([promise, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}
