import type { Refusal } from "../../core/errors.ts";
import { ACCESS, type Caller, refuseAccess } from "../../core/roles.ts";
import { type Owed, subtractOwed, sumOwed } from "../../core/solvency/owed.ts";
import type { StatedAsset, StatedHolding } from "../../core/solvency/statement.ts";
import { watchKey } from "../../core/treasury-watch.ts";
import { caip2Of } from "../../core/x402/chains.ts";
import type { Reader } from "../../store/reader.ts";
import type { Scope } from "../../store/scope.ts";
import type { Context } from "../context.ts";
import { pause } from "../solvency/owed-at.ts";
import { type FoundStatement, findStatement } from "../solvency/read.ts";

/** What a statement counts of an organisation's asset, and what it says of all. */
export type OwnLine = {
  readonly asset: string;
  /** To the organisation and its payees, at the statement's posting. */
  readonly owed: Owed;
  /** Null where the statement leaves the asset out. */
  readonly stated: StatedAsset | null;
};

/** An asset that a wallet on a chain holds. */
export type HeldAsset = StatedAsset & { readonly holding: StatedHolding };

export type SolvencyPage = {
  readonly found: FoundStatement;
  readonly lines: readonly OwnLine[];
  /** Of the organisation's mode. */
  readonly held: readonly HeldAsset[];
};

/** What a wallet on a chain holds of an asset, as its deposits were last compared with it. */
export type WalletNow = {
  readonly asset: string;
  /** CAIP-2. */
  readonly chain: string;
  readonly address: string;
  /** What the ledger owes the organisation and its payees of it now. */
  readonly owed: bigint;
  /** Null before the first look. */
  readonly seen: { readonly balance: bigint; readonly block: number } | null;
};

/** How many postings are summed at once: a few milliseconds. There may be a million since an old statement. */
const SUMMED_AT_ONCE = 5_000;

/** What the wallets of the mode hold; and the newest statement, with what it counts of the organisation: null where there is none. */
export async function readSolvencyPage(
  ctx: Context,
  caller: Caller,
): Promise<{ readonly wallets: readonly WalletNow[]; readonly newest: SolvencyPage | null } | Refusal> {
  const refused = refuseAccess(caller, ACCESS.readConsole);
  if (refused) return refused;
  return ctx.store.read(async (reader) => {
    const owedNow = await readOwedNow(reader, caller);
    const wallets = await walletsNow(ctx, reader, caller, owedNow);
    const found = await findStatement(reader, null);
    if (found === null) return { wallets, newest: null };
    const held = found.statement.assets.filter(
      (one): one is HeldAsset => one.mode === caller.mode && one.holding !== null,
    );
    return { wallets, newest: { found, lines: await linesOf(reader, caller, owedNow, found), held } };
  });
}

/** What is owed of an asset to an organisation and its payees now. */
type OwedNow = (asset: string) => Owed;

async function readOwedNow(reader: Reader, caller: Scope): Promise<OwedNow> {
  const balances = await reader.balances.list(caller);
  const toPayees = await reader.payees.totals(caller);
  return (asset) => {
    const { available = 0n, held = 0n } = balances.find((one) => one.asset === asset)?.balance ?? {};
    const { payable = 0n, submitted = 0n } = toPayees.find((one) => one.asset === asset) ?? {};
    return { available, held, payable, submitted };
  };
}

async function walletsNow(
  { treasuries }: Context,
  reader: Reader,
  caller: Scope,
  owedNow: OwedNow,
): Promise<readonly WalletNow[]> {
  const ofMode = treasuries.filter(({ mode }) => mode === caller.mode);
  if (ofMode.length === 0) return [];
  const watches = await reader.treasuryWatches.list();
  return ofMode.map((treasury) => {
    const { asset, chainId, address } = treasury;
    const watch = watches.find((one) => watchKey(one) === watchKey(treasury));
    return {
      ...{ asset, chain: caip2Of(chainId), address },
      owed: sumOwed(owedNow(asset)),
      seen: watch ? { balance: watch.balance, block: watch.reconciled.number } : null,
    };
  });
}

async function linesOf(
  reader: Reader,
  caller: Scope,
  owedNow: OwedNow,
  { statement: { posting, assets } }: FoundStatement,
): Promise<readonly OwnLine[]> {
  const lines: OwnLine[] = [];
  for (const { account, asset } of await reader.history.accounts(caller)) {
    let owed = owedNow(asset);
    for (let after: number | null = posting; after !== null; ) {
      const { legs, last } = await reader.statements.sums(
        account,
        after,
        Number.MAX_SAFE_INTEGER,
        SUMMED_AT_ONCE,
      );
      owed = subtractOwed(owed, legs);
      after = last;
      await pause();
    }
    const stated = assets.find((one) => one.mode === caller.mode && one.asset === asset) ?? null;
    if (sumOwed(owed) > 0n) lines.push({ asset, owed, stated });
  }
  return lines.sort((one, other) => (one.asset < other.asset ? -1 : 1));
}
