/** Where a job must not meet a fault: the run rejects with it. */
export const noFault = (error: unknown): never => {
  throw error;
};
