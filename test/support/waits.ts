import { expect, jest } from "bun:test";

const TURNS = 20;

/** What is asked for, which must wait for so many milliseconds, and no longer. The timers are made up meanwhile. */
export async function waitsFor<Answer>(ms: number, ask: () => Promise<Answer>): Promise<Answer> {
  jest.useFakeTimers();
  try {
    let isAnswered = false;
    const answer = ask().finally(() => {
      isAnswered = true;
    });
    answer.catch(() => {});
    const turns = async (): Promise<void> => {
      for (let turn = 0; turn < TURNS; turn++) await Promise.resolve();
    };
    await turns();
    jest.advanceTimersByTime(ms - 1);
    await turns();
    expect(isAnswered).toBeFalse();
    jest.advanceTimersByTime(1);
    return await answer;
  } finally {
    jest.useRealTimers();
  }
}
