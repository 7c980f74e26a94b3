/** A badge begins with a capital, wherever its words come from. */
export const capital = (words: string): string => words.charAt(0).toUpperCase() + words.slice(1);
