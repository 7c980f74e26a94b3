import { SECOND_MS } from "../core/time.ts";

/** How much is done, and how much there is to do. Each is null where it is not known. */
export type Figures = { readonly done: number | null; readonly total: number | null };

const NUMBER = new Intl.NumberFormat("en-US");
const MINUTE_SECONDS = 60;

/** What a terminal shows of a step, such as `holdfast: checking the ledger, 1,200 of 4,800 (25 %), 3 s`. */
export function progressLine(step: string, { done, total }: Figures, elapsedMs: number): string {
  return [`holdfast: ${step}`, ...countOf(done, total), durationOf(elapsedMs)].join(", ");
}

function countOf(done: number | null, total: number | null): readonly string[] {
  if (done === null) return [];
  if (total === null) return [`${NUMBER.format(done)} done`];
  const percent = total === 0 ? 100 : Math.min(100, Math.floor((done / total) * 100));
  return [`${NUMBER.format(done)} of ${NUMBER.format(total)} (${percent} %)`];
}

function durationOf(elapsedMs: number): string {
  const seconds = Math.floor(elapsedMs / SECOND_MS);
  const minutes = Math.floor(seconds / MINUTE_SECONDS);
  return minutes === 0 ? `${seconds} s` : `${minutes} min ${seconds % MINUTE_SECONDS} s`;
}
