import type { Capsule } from "../core/capsule.ts";
import { isBought } from "../core/x402/content.ts";
import type { Purchase } from "../core/x402/purchase.ts";
import { OLDEST_CAPSULES_MAX } from "./needs.ts";
import { indexKeyOf } from "./rows.ts";
import type { IndexName, IndexTable, LoadedKind, LoadedRows } from "./view.ts";

/** A row before and after a write: null before it exists, and after it is deleted. */
export type Written<Row> = { readonly before: Row | null; readonly after: Row | null };

/** The known answers of an index, by their questions (`indexKeyOf`). */
type Answers<Name extends IndexName> = Map<string, IndexTable[Name]["gives"]>;

/**
 * How the known answers of an index follow a write of each kind of row that it depends on. An answer that does not
 * follow from what is known is deleted, and read again.
 */
type Follows<Name extends IndexName> = {
  readonly [Kind in LoadedKind]?: (answers: Answers<Name>, written: Written<LoadedRows[Kind]>) => void;
};

/**
 * The indexes that many commands of a batch ask, and whose answers each of them changes. To read them again for each
 * command would be a round trip for each.
 */
export const FOLLOWED = {
  contentBytes: { purchase: moveContent },
  newestCapsule: { capsule: followNewest },
  oldestCapsules: { capsule: followOldest },
  openAuthorizations: { purchase: moveAuthorizations },
} satisfies { readonly [Name in IndexName]?: Follows<Name> };

/** How many of a scope's oldest capsules are known at first: that many commands can delete one, and one still finds all it asks for. */
export const OLDEST_KNOWN_MAX = 2 * OLDEST_CAPSULES_MAX;

function moveContent(answers: Answers<"contentBytes">, { before, after }: Written<Purchase>): void {
  const add = (row: Purchase, bytes: number) => {
    const key = indexKeyOf([row.organisationId, row.mode, isBought(row) ? "bought" : "free"]);
    const sum = answers.get(key);
    if (sum !== undefined) answers.set(key, sum + bytes);
  };
  if (before) add(before, -before.contentBytes);
  if (after) add(after, after.contentBytes);
}

const scopeOf = ({ organisationId, mode }: Capsule): string => indexKeyOf([organisationId, mode]);

/** Capsules are made and deleted, and never changed. */
function followNewest(answers: Answers<"newestCapsule">, { before, after }: Written<Capsule>): void {
  if (after && answers.has(scopeOf(after))) answers.set(scopeOf(after), after.id);
  if (before && answers.get(scopeOf(before)) === before.id) answers.delete(scopeOf(before));
}

function followOldest(answers: Answers<"oldestCapsules">, { before, after }: Written<Capsule>): void {
  const row = after ?? before;
  const known = row && answers.get(scopeOf(row));
  if (!known) return;
  if (after) {
    if (!known.isAll) return;
    const isAll = known.ids.length < OLDEST_KNOWN_MAX;
    answers.set(scopeOf(row), { ...known, ids: isAll ? [...known.ids, row.id] : known.ids, isAll });
    return;
  }
  const ids = known.ids.filter((id) => id !== row.id);
  if (known.isAll || ids.length >= OLDEST_CAPSULES_MAX)
    answers.set(scopeOf(row), { ...known, ids, isShortened: true });
  else answers.delete(scopeOf(row));
}

function moveAuthorizations(
  answers: Answers<"openAuthorizations">,
  { before, after }: Written<Purchase>,
): void {
  for (const [key, sum] of answers) answers.set(key, sum - openAmount(before, key) + openAmount(after, key));
}

/** What a purchase adds to the answer to a question. The same is in SQL (`sql/wallet-indexes.ts`). */
function openAmount(purchase: Purchase | null, key: string): bigint {
  const { quote = null, payer = null } = purchase ?? {};
  if (!purchase || payer === null || quote?.pays.kind !== "exact") return 0n;
  const token = `${indexKeyOf([payer, quote.pays.chainId, quote.pays.contract])}\0`;
  if (!key.startsWith(token) || purchase.known === "unpaid") return 0n;
  const { known, answeredAt } = purchase;
  const isInBalance =
    known === "paid" && (answeredAt === null || answeredAt < Number(key.slice(token.length)));
  return isInBalance ? 0n : quote.amount;
}
