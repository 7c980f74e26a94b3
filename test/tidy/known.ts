/**
 * A rule's findings, less those that were known when the rule came. A known finding that is no longer found is reported too,
 * so the list of known ones can only shrink.
 */
export function exceptKnown(found: readonly string[], known: readonly string[]): string[] {
  const gone = known.filter((one) => !found.includes(one));
  return [
    ...found.filter((one) => !known.includes(one)),
    ...gone.map((one) => `no longer found; take it off the list of known ones: ${one}`),
  ];
}
