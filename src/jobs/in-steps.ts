/** How much is written before requests are served again. */
const STEP = 100;

/** Writes all of it, some at a time. Where that fails, what was not written yet is given back. */
export async function writeInSteps<Item>(
  items: readonly Item[],
  write: (item: Item) => Promise<void>,
  putBack: (items: readonly Item[]) => void,
): Promise<void> {
  for (let start = 0; start < items.length; start += STEP) {
    try {
      await Promise.all(items.slice(start, start + STEP).map(write));
    } catch (error) {
      putBack(items.slice(start));
      throw error;
    }
  }
}
