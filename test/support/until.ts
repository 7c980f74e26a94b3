const PAUSE_MS = 10;

/**
 * Waits for what nothing announces: looks again and again until it finds something, and answers that. Throws where that takes
 * too long.
 *
 * @param what ends the sentence "it is still not so that …"
 * @param look answers `false` or null while there is nothing to find yet
 */
export async function until<Found>(
  what: string,
  look: () => Found | Promise<Found>,
  timeoutMs = 30_000,
): Promise<Exclude<Found, false | null>> {
  const giveUpAt = performance.now() + timeoutMs;
  for (;;) {
    const found = await look();
    if (found !== false && found !== null) return found as Exclude<Found, false | null>;
    if (performance.now() > giveUpAt)
      throw new Error(`after ${timeoutMs} ms it is still not so that ${what}`);
    await Bun.sleep(PAUSE_MS);
  }
}
