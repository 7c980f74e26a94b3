import { type Creditor, type LeafWire, leafWire, nodeOfLeaf, saltOf } from "../../core/solvency/leaf.ts";
import { addOwed, NOTHING_OWED, type Owed, sumOwed } from "../../core/solvency/owed.ts";
import { compareAssets, type StatedAsset } from "../../core/solvency/statement.ts";
import { type BuiltTree, createSumTree, type SumTree } from "../../core/solvency/sum-tree.ts";
import type { Reader } from "../../store/reader.ts";
import { type OwedThenByAccount, owedAt, pause, ROWS, stepwise } from "./owed-at.ts";

type AssetOfMode = Pick<StatedAsset, "mode" | "asset">;

/** The tree of an asset in one mode. */
export type RebuiltAsset = AssetOfMode & {
  readonly owed: Owed;
  readonly built: BuiltTree;
  /** The leaf that was asked for; null where nothing is owed to it. */
  readonly leaf: LeafWire | null;
};

type Rebuilding = {
  /** The position of the last posting that is counted. */
  readonly posting: number;
  /** The secret of the salts. */
  readonly seed: Uint8Array;
  /** Which assets, of all of which something was owed. */
  readonly choose: (owed: readonly (AssetOfMode & { readonly owed: Owed })[]) => readonly AssetOfMode[];
  /** Whose leaf and way up are asked for, of every chosen asset. */
  readonly of?: Pick<Creditor, "organisationId" | "payee">;
};

const keyOf = ({ mode, asset }: AssetOfMode): string => `${mode} ${asset}`;

type Growing = { readonly tree: SumTree; leaf: LeafWire | null };

/**
 * Computes the trees of a statement from the ledger as it was at a posting, from one snapshot. It pauses every few milliseconds. A
 * leaf takes 48 bytes while its tree is built, and nothing afterwards.
 *
 * @throws where the payees' accounts do not sum up to what their organisations' accounts say
 */
export async function rebuild(reader: Reader, asked: Rebuilding): Promise<readonly RebuiltAsset[]> {
  const then = await owedAt(reader, () => asked.posting);
  const owed = owedByAsset(then);
  const growing = new Map<string, Growing>(
    asked.choose([...owed.values()]).map((chosen) => [keyOf(chosen), { tree: createSumTree(), leaf: null }]),
  );
  await addLeaves(reader, asked, then, growing);
  const rebuilt: RebuiltAsset[] = [];
  for (const [key, { tree, leaf }] of growing) {
    const built = await finished(tree.build(leaf && nodeOfLeaf(leaf).hash));
    const { mode, asset, ...of } = owed.get(key) ?? { ...assetOf(key), owed: NOTHING_OWED };
    if (built.root.sum !== sumOwed(of.owed))
      throw new Error(
        `the payees of ${mode} ${asset} do not sum up to what their accounts say; run holdfast audit`,
      );
    rebuilt.push({ mode, asset, owed: of.owed, built, leaf });
  }
  return rebuilt.sort(compareAssets);
}

/** What was owed of each asset, of which something was. */
function owedByAsset({ accounts }: OwedThenByAccount) {
  const owed = new Map<string, AssetOfMode & { readonly owed: Owed }>();
  for (const { mode, asset, owedThen: of } of accounts.values()) {
    if (sumOwed(of) === 0n) continue;
    const key = keyOf({ mode, asset });
    owed.set(key, { mode, asset, owed: addOwed(owed.get(key)?.owed ?? NOTHING_OWED, of) });
  }
  return owed;
}

function assetOf(key: string): AssetOfMode {
  const [mode, asset = ""] = key.split(" ");
  return { mode: mode === "live" ? "live" : "sandbox", asset };
}

async function addLeaves(
  { solvency }: Reader,
  { seed, of }: Rebuilding,
  { accounts, payeesSince }: OwedThenByAccount,
  growing: ReadonlyMap<string, Growing>,
): Promise<void> {
  const add = (creditor: Creditor, amount: bigint): void => {
    const into = growing.get(keyOf(creditor));
    if (!into || amount === 0n) return;
    const leaf = leafWire({ ...creditor, amount, salt: saltOf(seed, creditor) });
    into.tree.add(nodeOfLeaf(leaf));
    if (of && creditor.organisationId === of.organisationId && creditor.payee === of.payee) into.leaf = leaf;
  };
  let done = 0;
  for (const { organisationId, mode, asset, owedThen } of accounts.values()) {
    add({ organisationId, mode, asset, payee: null }, owedThen.available + owedThen.held);
    if (++done % ROWS === 0) await pause();
  }
  for await (const { position, account: at, payee, payable, submitted } of stepwise((...step) =>
    solvency.payees(...step),
  )) {
    const account = accounts.get(at);
    if (!account) throw new Error(`the payee at position ${position} is of no account`);
    const { organisationId, mode, asset } = account;
    const since = payeesSince.get(position) ?? NOTHING_OWED;
    add({ organisationId, mode, asset, payee }, payable - since.payable + submitted - since.submitted);
  }
}

async function finished<Built>(building: Generator<undefined, Built>): Promise<Built> {
  for (;;) {
    const { done, value } = building.next();
    if (done) return value;
    await pause();
  }
}
