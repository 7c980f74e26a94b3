/** For jobs that must have no fault: a fault is thrown, and the run rejects with it. */
export const noFault = (error: unknown): never => {
  throw error;
};

/** For runs in which no chain contradicts a person. */
export const noContradiction = (purchaseId: string): never => {
  throw new Error(`a chain contradicts what a person said of ${purchaseId}`);
};
