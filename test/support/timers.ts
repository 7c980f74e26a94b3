/** Timers that only a test sets off. */
export function createTimers() {
  type Timer = { readonly ms: number; readonly then: () => void };
  const set = new Set<Timer>();
  return {
    after(ms: number, then: () => void) {
      const timer = { ms, then };
      set.add(timer);
      return { cancel: () => void set.delete(timer) };
    },
    /** How long each of them waits. */
    waits: () => [...set].map(({ ms }) => ms),
    fire() {
      for (const { then } of [...set]) then();
    },
  };
}
