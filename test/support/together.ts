/** More turns of the microtask queue than any verb needs for its reads before it asks for its commit. */
const READS = 200;

/**
 * Starts verbs one after the other. Each has asked for its commit before the next one starts, so they are decided in this order,
 * in one transaction. Answers their outcomes, in the same order.
 */
export async function together<Outcomes extends readonly unknown[]>(
  ...starts: { readonly [Index in keyof Outcomes]: () => Promise<Outcomes[Index]> }
): Promise<{ -readonly [Index in keyof Outcomes]: Outcomes[Index] }> {
  const started: Promise<unknown>[] = [];
  for (const start of starts) {
    started.push(start());
    for (let turn = 0; turn < READS; turn++) await null;
  }
  return (await Promise.all(started)) as { -readonly [Index in keyof Outcomes]: Outcomes[Index] };
}
