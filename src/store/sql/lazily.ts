/**
 * Makes a look-up at its first use: a process asks for few of them, and a start would wait while drizzle prepares them all.
 */
export function lazily<Asked extends unknown[], Result>(
  make: () => (...asked: Asked) => Result,
): (...asked: Asked) => Result {
  let made: ((...asked: Asked) => Result) | null = null;
  return (...asked) => {
    made ??= make();
    return made(...asked);
  };
}
