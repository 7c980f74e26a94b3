import { until } from "./until.ts";

/** Timers that only a test sets off. */
export function createTimers() {
  type Timer = { readonly ms: number; readonly then: () => void };
  const set = new Set<Timer>();
  function fire(): void {
    for (const timer of [...set]) if (set.delete(timer)) timer.then();
  }
  return {
    fire,
    /** Sets them off again and again until a promise resolves, which waits for more than them. */
    async fireUntil<Result>(coming: Promise<Result>): Promise<Result> {
      let hasCome = false;
      void coming.then(() => {
        hasCome = true;
      });
      await until("it has come", () => {
        fire();
        return hasCome;
      });
      return coming;
    },
    after(ms: number, then: () => void) {
      const timer = { ms, then };
      set.add(timer);
      return { cancel: () => void set.delete(timer) };
    },
    /** How long each of them waits. */
    waits: () => [...set].map(({ ms }) => ms),
  };
}
