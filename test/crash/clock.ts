import { existsSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** Debian's libfaketime, which gives a program another time than the machine's. */
export const FAKETIME = "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1";

/** The environment of programs whose clock is as far from the machine's as a file says. */
export const fakeTimeBy = (file: string): Readonly<Record<string, string>> => ({
  LD_PRELOAD: FAKETIME,
  FAKETIME_TIMESTAMP_FILE: file,
  FAKETIME_NO_CACHE: "1",
  // Timers use a clock that never jumps.
  FAKETIME_DONT_FAKE_MONOTONIC: "1",
});

/** Sets the clock of the programs of `fakeTimeBy`, at once: from a file that is half written they would read another time. */
export function writeOffset(file: string, offset: string): void {
  writeFileSync(`${file}.next`, offset);
  renameSync(`${file}.next`, file);
}

/**
 * The clock of the machine on which the server runs, and which a test lets jump; and the right time, by which everybody else
 * goes. Both are epoch milliseconds. Where libfaketime is missing, no clock jumps.
 */
export type Clock = {
  readonly canJump: boolean;
  readonly settings: Readonly<Record<string, string>>;
  /** The right time. */
  readonly now: () => number;
  /** The present time by every clock that the server ever had. */
  readonly times: () => readonly number[];
  /** Lets the server's clock jump, forwards or back, from the right time. */
  jump(ms: number): void;
  /** Sets the server's clock to the right time. */
  setRight(): void;
  /** From now on the server's time is the right one: it was everybody else who slept. */
  believe(): void;
};

export function createClock(folder: string): Clock {
  const file = join(folder, "clock");
  const canJump = existsSync(FAKETIME);
  let [aheadMs, serverAheadMs] = [0, 0];
  const everAheadMs = new Set<number>();
  const set = (ms: number): void => {
    serverAheadMs = ms;
    everAheadMs.add(ms);
    writeOffset(file, `${ms < 0 ? "-" : "+"}${(Math.abs(ms) / 1_000).toFixed(3)}`);
  };
  set(0);
  return {
    canJump,
    settings: canJump ? fakeTimeBy(file) : {},
    now: () => Date.now() + aheadMs,
    times: () => [...everAheadMs].map((ms) => Date.now() + ms),
    jump: (ms) => set(aheadMs + ms),
    setRight: () => set(aheadMs),
    believe() {
      aheadMs = serverAheadMs;
    },
  };
}
