import { gatherCommands } from "./store.ts";

/**
 * Starts verbs one after the other. Each has asked for its commit before the next one starts, so they are decided in this order,
 * in one transaction. Answers their outcomes, in the same order.
 */
export async function together<Outcomes extends readonly unknown[]>(
  ...starts: { readonly [Index in keyof Outcomes]: () => Promise<Outcomes[Index]> }
): Promise<{ -readonly [Index in keyof Outcomes]: Outcomes[Index] }> {
  const started: Promise<unknown>[] = [];
  const { next, release } = gatherCommands();
  for (const start of starts) {
    const asked = next();
    const outcome = start();
    started.push(outcome);
    // One that is refused before asks for no commit.
    await Promise.race([asked, outcome.catch(() => {})]);
  }
  release();
  return (await Promise.all(started)) as { -readonly [Index in keyof Outcomes]: Outcomes[Index] };
}
