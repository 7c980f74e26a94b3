/** For jobs that must have no fault: a fault is thrown, and the run rejects with it. */
export const noFault = (error: unknown): never => {
  throw error;
};
