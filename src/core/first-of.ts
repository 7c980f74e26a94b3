/** The first of these messages, and how many more there are. */
export const firstOf = ([first = "", ...more]: readonly string[]): string =>
  more.length === 0 ? first : `${first}, and ${more.length} more`;
