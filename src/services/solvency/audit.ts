import { rootMessage } from "../../core/errors.ts";
import { OWED_PARTS } from "../../core/solvency/owed.ts";
import { compareAssets, type KeptStatement, type StatedAsset } from "../../core/solvency/statement.ts";
import type { Reader } from "../../store/reader.ts";
import type { Context } from "../context.ts";
import { readKept } from "./read.ts";
import { type RebuiltAsset, rebuild } from "./rebuild.ts";

/** How many of the newest statements are computed anew: each takes what its signing took, and the postings since. */
const RECOMPUTED = 3;

/** Computes the newest statements anew from the ledger as it was, and compares their sums and roots. One message for each disagreement. */
export async function auditNewestStatements({ store }: Context): Promise<readonly string[]> {
  const kept = await store.read(({ solvency }) => solvency.statements(Number.MAX_SAFE_INTEGER, RECOMPUTED));
  const problems: string[] = [];
  for (const one of kept) {
    try {
      problems.push(...(await store.read((reader) => problemsOf(reader, one))));
    } catch (error) {
      problems.push(`statement ${one.number}: ${rootMessage(error)}`);
    }
  }
  return problems;
}

async function problemsOf(reader: Reader, kept: KeptStatement): Promise<readonly string[]> {
  const what = `statement ${kept.number}`;
  const { number, instanceId, posting, leftOut, assets } = readKept(kept);
  const { id } = await reader.instance.get();
  if (number !== kept.number || instanceId !== id)
    return [`${what}: is the statement ${number} of ${instanceId}`];
  const newest = await reader.solvency.newestPosting();
  if (posting > newest) return [`${what}: is at the posting ${posting}, and the ledger has ${newest}`];
  let missing = 0;
  const rebuilt = await rebuild(reader, {
    ...{ posting, seed: Uint8Array.fromHex(kept.seed) },
    choose(owed) {
      missing = owed.filter((one) => !assets.some((stated) => compareAssets(stated, one) === 0)).length;
      return assets;
    },
  });
  return [
    ...(missing === leftOut ? [] : [`${what}: leaves out ${missing} assets, and says ${leftOut}`]),
    ...assets.flatMap((stated) => problemsOfAsset(what, stated, rebuilt)),
  ];
}

function problemsOfAsset(
  what: string,
  stated: StatedAsset,
  rebuilt: readonly RebuiltAsset[],
): readonly string[] {
  const found = rebuilt.find((one) => compareAssets(one, stated) === 0);
  const differing = OWED_PARTS.filter((part) => found?.owed[part] !== stated.owed[part]).map(
    (part) => `${part} was ${found?.owed[part]}, and it says ${stated.owed[part]}`,
  );
  if (found?.built.leaves !== stated.leaves)
    differing.push(`something was owed to ${found?.built.leaves}, and it says ${stated.leaves}`);
  if (found?.built.root.hash.toHex() !== stated.root) differing.push("its root is not that of its leaves");
  return differing.map((problem) => `${what}: of ${stated.mode} ${stated.asset} ${problem}`);
}
