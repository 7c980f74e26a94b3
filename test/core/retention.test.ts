import { expect, test } from "bun:test";
import fc from "fast-check";
import { addMark, type RetentionMark, recordedBefore } from "../../src/core/retention.ts";
import { DAY_MS, HOUR_MS } from "../../src/core/time.ts";

/** What is kept is counted in the time that a server ran (docs/operating, "Retention"), whatever the clock does. */

type Row = { readonly recordedAt: number; readonly ranMs: number };

/** A ledger and the server on it, as time passes. */
class Model {
  /** What the clock says, and how long servers have run in truth. */
  clock = 1_000 * DAY_MS;
  ranMs = 0;
  marks: readonly RetentionMark[] = [];
  rows: Row[] = [];
  private newestRecord = 0;
  private countedMs = 0;

  constructor(
    readonly limitMs: number,
    readonly longestMs: number,
  ) {}

  run(ms: number): void {
    this.ranMs += ms;
    this.clock += ms;
  }
  /** What ran since the last count is never counted. */
  stop(ms: number): void {
    this.clock += ms;
    this.countedMs = this.ranMs;
  }
  record(): void {
    this.rows.push({ recordedAt: this.recordedNow(), ranMs: this.ranMs });
  }
  /** Answers what is forgotten. */
  count(): readonly Row[] {
    this.marks = addMark(this.marks, this.ranMs - this.countedMs, this.recordedNow(), this.longestMs);
    this.countedMs = this.ranMs;
    const before = recordedBefore(this.marks, this.limitMs);
    const isOld = ({ recordedAt }: Row) => recordedAt < before;
    const forgotten = this.rows.filter(isOld);
    this.rows = this.rows.filter((row) => !isOld(row));
    return forgotten;
  }
  /** Recorded times never run back. */
  private recordedNow(): number {
    this.newestRecord = Math.max(this.newestRecord, this.clock);
    return this.newestRecord;
  }
}

const limits = fc
  .constantFrom(1, 2, 3, 30)
  .map((days) => ({ limitMs: days * DAY_MS, longestMs: 30 * DAY_MS }));
const upTo = (max: number) => fc.integer({ min: 0, max });

test("nothing is forgotten before a server has run for so long since its record, whatever the clock does", () => {
  const step = fc.oneof(
    fc.constant({ kind: "record" as const }),
    fc.constant({ kind: "count" as const }),
    fc.record({ kind: fc.constant("run" as const), ms: fc.oneof(upTo(3), upTo(HOUR_MS), upTo(9 * DAY_MS)) }),
    fc.record({ kind: fc.constant("stop" as const), ms: upTo(400 * DAY_MS) }),
    fc.record({
      kind: fc.constant("jump" as const),
      ms: fc.integer({ min: -99 * DAY_MS, max: 99 * DAY_MS }),
    }),
  );
  let forgotten = 0;
  fc.assert(
    fc.property(limits, fc.array(step, { maxLength: 80, size: "max" }), ({ limitMs, longestMs }, steps) => {
      const model = new Model(limitMs, longestMs);
      for (const next of steps) {
        if (next.kind === "jump") model.clock += next.ms;
        else if (next.kind === "run" || next.kind === "stop") model[next.kind](next.ms);
        else if (next.kind === "record") model.record();
        else {
          for (const row of model.count()) {
            expect(model.ranMs - row.ranMs).toBeGreaterThanOrEqual(limitMs);
            forgotten++;
          }
        }
      }
    }),
    { numRuns: 500 },
  );
  expect(forgotten).toBeGreaterThan(100);
});

test("all is forgotten at most one mark's distance late while a server runs, however long it stood still before", () => {
  const stretch = fc.record({
    stoppedMs: fc.oneof(fc.constant(0), upTo(400 * DAY_MS)),
    everyMs: fc.integer({ min: 1, max: HOUR_MS }),
    counts: upTo(300),
  });
  fc.assert(
    fc.property(limits, fc.array(stretch, { maxLength: 12 }), ({ limitMs, longestMs }, stretches) => {
      const model = new Model(limitMs, longestMs);
      const apartMs = limitMs <= 2 * DAY_MS ? HOUR_MS : DAY_MS;
      for (const { stoppedMs, everyMs, counts } of stretches) {
        model.stop(stoppedMs);
        for (let count = 0; count < counts; count++) {
          model.record();
          model.run(everyMs);
          model.count();
          const oldest = model.rows[0]?.ranMs ?? model.ranMs;
          expect(model.ranMs - oldest).toBeLessThanOrEqual(limitMs + apartMs + HOUR_MS);
        }
      }
    }),
    { numRuns: 60 },
  );
});

test("no more marks are kept than two days by the hour and the longest limit by the day need", () => {
  const model = new Model(DAY_MS, 30 * DAY_MS);
  let most = 0;
  for (let count = 0; count < 60 * 24 * 6; count++) {
    model.run(HOUR_MS / 6);
    model.count();
    most = Math.max(most, model.marks.length);
  }
  expect(most).toBeLessThanOrEqual(48 + 28 + 3);
});
