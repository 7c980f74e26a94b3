/** How much a run does, and the folder for what it writes. */
export type Scale = {
  readonly folder: string;
  /** The number of rounds, where measurements take turns. */
  readonly rounds: number;
  /** Warrants in the large folder, which is compared with the small one. */
  readonly warrantsLarge: number;
};

export const WARRANTS_SMALL = 10_000;
export const CONNECTIONS = 64;

export const inWords = (count: number): string => count.toLocaleString("en");

/** Prints progress on stderr, since only the table belongs to the output. */
export const say = (text: string): void => console.error(text);
