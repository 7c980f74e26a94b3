import type { Section } from "./markdown.ts";

/** The search of the documentation: over what the pages say, section by section, and without asking anybody outside. */

/** A section, and the page that it is on. */
export type Place = Section & { readonly path: string; readonly page: string };

type Known = {
  readonly place: Place;
  readonly titleWords: readonly string[];
  readonly words: readonly string[];
};

const FOUND_MAX = 20;
const QUERY_WORDS_MAX = 8;

/** A code such as deadline_in_past is one word; its parts are words too. */
const wordsOf = (text: string): string[] => {
  const words = text.toLowerCase().match(/[\p{L}\p{N}_]+/gu) ?? [];
  return words.flatMap((word) => (word.includes("_") ? [word, ...word.split("_")] : [word]));
};

/** Finds the sections that have all words of a query, or words that begin so; the best come first. */
export function createSearch(places: readonly Place[]): (query: string) => readonly Place[] {
  const known: readonly Known[] = places.map((place) => ({
    place,
    titleWords: wordsOf(place.title),
    words: wordsOf(`${place.page} ${place.text}`),
  }));
  return (query) => {
    const asked = (query.toLowerCase().match(/[\p{L}\p{N}_]+/gu) ?? []).slice(0, QUERY_WORDS_MAX);
    if (asked.length === 0) return [];
    return known
      .map((section) => ({ section, score: scoreOf(section, asked) }))
      .filter(({ score }) => score > 0)
      .sort((one, other) => other.score - one.score)
      .slice(0, FOUND_MAX)
      .map(({ section }) => section.place);
  };
}

/** 0 where one of the words is nowhere in the section. A word in the heading counts more than many below it. */
function scoreOf({ titleWords, words }: Known, asked: readonly string[]): number {
  let sum = 0;
  for (const word of asked) {
    const inTitle = bestOf(titleWords, word) * 20;
    const inText = bestOf(words, word);
    if (inTitle + inText === 0) return 0;
    sum += inTitle + inText;
  }
  // Of two equal ones the shorter says less besides.
  return sum + 1 / (2 + words.length);
}

/** 2 where the word itself is there, 1 where one begins so. */
function bestOf(words: readonly string[], asked: string): number {
  let best = 0;
  for (const word of words) {
    if (word === asked) return 2;
    if (best === 0 && word.startsWith(asked)) best = 1;
  }
  return best;
}
