/** Shows a person how far long work has come. */
export type Progress = {
  /**
   * Says how much is done. It costs little: work may call it for every row.
   *
   * @param total how much there is to do; null where that is not known
   */
  update(done: number, total: number | null): void;
  /** Ends the display, and resolves once nothing is shown any more. A second call does nothing. */
  stop(): Promise<void>;
};

/** Begins to show the progress of a step, such as `checking the ledger`. */
export type StartProgress = (step: string) => Progress;

/** For work that nobody watches. */
export const NO_PROGRESS: Progress = { update: () => {}, stop: async () => {} };

/** Does the work, and ends its progress, whether the work succeeds or fails. */
export async function withProgress<Answer>(
  progress: Progress,
  work: (progress: Progress) => Promise<Answer>,
): Promise<Answer> {
  try {
    return await work(progress);
  } finally {
    await progress.stop();
  }
}
