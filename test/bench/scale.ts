/** How much a run does, and the folder for what it writes. */
export type Scale = {
  readonly folder: string;
  /** Rounds of what is measured in turns. */
  readonly rounds: number;
  /** Warrants in the large folder, which is compared with the small one. */
  readonly warrantsLarge: number;
};

export const WARRANTS_SMALL = 10_000;
export const CONNECTIONS = 64;

export const inWords = (count: number): string => count.toLocaleString("en");

/** Progress is for whoever waits; the table alone is the result. */
export const say = (text: string): void => console.error(text);
