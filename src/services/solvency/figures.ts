import type { Refusal } from "../../core/errors.ts";
import {
  CLOCKS_DIFFER_MS,
  type HeldLine,
  type Holding,
  type Judgement,
  judge,
  judgeSeen,
  type OwedThen,
  type SolvencyLine,
} from "../../core/solvency/judgement.ts";
import { addOwed, NOTHING_OWED, type Owed, sumOwed } from "../../core/solvency/owed.ts";
import { compareAssets } from "../../core/solvency/statement.ts";
import type { Treasury } from "../../core/treasury.ts";
import { listResource } from "../../resources/list.ts";
import { solvencyResource } from "../../resources/solvency.ts";
import type { Reader } from "../../store/reader.ts";
import { type Authority, refuseAuthority } from "../admin/authority.ts";
import type { Context } from "../context.ts";
import { fromCopy } from "../from-copy.ts";
import { owedAt } from "./owed-at.ts";

/** What the ledger owes now of every asset, and what the chains held at their newest confirmed blocks. */
export async function readSolvency(ctx: Context): Promise<readonly SolvencyLine[]> {
  const found = await Promise.all(
    ctx.treasuries.map(async (treasury) => ({ treasury, found: await ctx.holdingOf(treasury) })),
  );
  return ctx.store.read(async (reader) => {
    const lines = new Map<string, Growing>();
    for (const { treasury, found: answer } of found) {
      const holding = "away" in answer ? null : answer;
      const posting =
        holding === null
          ? Number.MAX_SAFE_INTEGER
          : await reader.history.postingsSince(holding.blockTime - CLOCKS_DIFFER_MS);
      const away = "away" in answer ? answer.away : null;
      lines.set(keyOf(treasury), { ...newLine(treasury), posting, held: { treasury, holding, away } });
    }
    await addAccounts(reader, lines);
    return [...lines.values()]
      .filter(({ held, owed }) => held !== null || sumOwed(owed) > 0n)
      .map(({ mode, asset, owed, owedThen, submittedSince, held }): SolvencyLine => {
        const judgement = held && judgeNow(held.holding, { owed: owedThen, submittedSince }, ctx.now());
        return { mode, asset, owed, held: held && judgement && { ...held, judgement } };
      })
      .sort(compareAssets);
  });
}

const judgeNow = (holding: Holding | null, then: OwedThen, now: number): Judgement =>
  judgeSeen(judge(holding, then), holding === null ? 0 : now - holding.newestTime);

type Growing = Pick<Treasury, "mode" | "asset"> & {
  /** What is owed after this posting is left out of `owedThen`. */
  readonly posting: number;
  readonly held: Omit<HeldLine, "judgement"> | null;
  owed: Owed;
  owedThen: Owed;
  submittedSince: bigint;
};

const keyOf = ({ mode, asset }: Pick<Treasury, "mode" | "asset">): string => `${mode} ${asset}`;

const newLine = ({ mode, asset }: Pick<Treasury, "mode" | "asset">): Growing => ({
  ...{ mode, asset, posting: Number.MAX_SAFE_INTEGER, held: null },
  ...{ owed: NOTHING_OWED, owedThen: NOTHING_OWED, submittedSince: 0n },
});

async function addAccounts(reader: Reader, lines: Map<string, Growing>): Promise<void> {
  const positionOf = (account: Pick<Treasury, "mode" | "asset">): number =>
    lines.get(keyOf(account))?.posting ?? Number.MAX_SAFE_INTEGER;
  const { accounts } = await owedAt(reader, positionOf);
  for (const account of accounts.values()) {
    const key = keyOf(account);
    const line = lines.get(key) ?? newLine(account);
    lines.set(key, line);
    line.owed = addOwed(line.owed, account.owed);
    line.owedThen = addOwed(line.owedThen, account.owedThen);
    line.submittedSince += account.submittedSince;
  }
}

/** For the operator: what is owed, and what is held. */
export async function showSolvency(ctx: Context, authority: Authority) {
  const refused: Refusal | null = refuseAuthority(authority, "admin");
  if (refused) return refused;
  const lines = await readSolvency(fromCopy(ctx));
  return { ...listResource(lines.map(solvencyResource)), has_more: false as const };
}
