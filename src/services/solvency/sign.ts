import { sha256 } from "../../core/canonical.ts";
import { type Refusal, refuse } from "../../core/errors.ts";
import { logNameOf } from "../../core/log.ts";
import {
  compareAssets,
  type KeptStatement,
  STATED_ASSETS_MAX,
  type StatedAsset,
  type StatedHolding,
  statementText,
} from "../../core/solvency/statement.ts";
import type { Treasury } from "../../core/treasury.ts";
import { caip2Of } from "../../core/x402/chains.ts";
import type { Context } from "../context.ts";
import { awaitsAcknowledgement } from "../instance.ts";
import { anchor, signedNoteOf } from "../log/anchor.ts";
import { rebuild } from "./rebuild.ts";

const SEED_BYTES = 32;
/** Another process may sign the statement of the same number meanwhile. */
const TRIES = 3;

type AssetOfMode = Pick<StatedAsset, "mode" | "asset">;

/**
 * Signs what the ledger owes now and what the chains hold, and puts it into the log, under a checkpoint that covers it.
 *
 * @throws where the ledger disagrees with itself
 */
export async function signStatement(ctx: Context): Promise<KeptStatement | Refusal> {
  const instance = await ctx.store.read((reader) => reader.instance.get());
  if (awaitsAcknowledgement(instance))
    return refuse(
      "restore_unacknowledged",
      "The ledger was restored from a backup, which may have forgotten statements. It signs new ones when its operator has run `holdfast restore acknowledge`.",
    );
  const holdings = await readHoldings(ctx);
  for (let attempt = 0; attempt < TRIES; attempt++) {
    const statement = await makeStatement(ctx, instance.id, holdings);
    if (!(await ctx.store.keepStatement(statement))) continue;
    await anchor(ctx);
    return statement;
  }
  throw new Error("other processes signed statements at the same time");
}

type Held = { readonly treasury: Treasury; readonly holding: StatedHolding };

const readHoldings = ({ treasuries, holdingOf }: Context): Promise<readonly Held[]> =>
  Promise.all(
    treasuries.map(async (treasury) => {
      const found = await holdingOf(treasury);
      const { chainId, token, address } = treasury;
      const seen = "away" in found ? null : found;
      return {
        treasury,
        holding: {
          ...{ chain: caip2Of(chainId), token, address },
          seen: seen && { balance: seen.balance, block: seen.block, blockHash: seen.blockHash },
        },
      };
    }),
  );

async function makeStatement(
  ctx: Context,
  instanceId: string,
  holdings: readonly Held[],
): Promise<KeptStatement> {
  const seed = Uint8Array.from({ length: SEED_BYTES }, () => ctx.randomByte());
  let leftOut = 0;
  // Whoever computes the statement again must find the same postings up to it.
  const posting = await ctx.store.read(({ solvency }) => solvency.newestPosting());
  const { number, rebuilt } = await ctx.store.read(
    async (reader) => {
      return {
        number: ((await reader.solvency.statement(null))?.number ?? 0) + 1,
        rebuilt: await rebuild(reader, {
          ...{ posting, seed },
          choose(owed) {
            const chosen = chooseAssets(owed, holdings);
            leftOut = chosen.length - Math.min(chosen.length, STATED_ASSETS_MAX);
            return chosen.slice(0, STATED_ASSETS_MAX);
          },
        }),
      };
    },
    { afterAll: true },
  );
  const assets = rebuilt.map(
    ({ mode, asset, owed, built }): StatedAsset => ({
      ...{ mode, asset, owed, leaves: built.leaves, root: built.root.hash.toHex() },
      holding:
        holdings.find(({ treasury }) => treasury.mode === mode && treasury.asset === asset)?.holding ?? null,
    }),
  );
  const text = statementText({ number, instanceId, createdAt: ctx.now(), posting, leftOut, assets });
  const note = await signedNoteOf(ctx.tokens, logNameOf(instanceId), text);
  return { number, note, seed: seed.toHex(), entryHash: sha256(note) };
}

/** Those with a treasury come first, then live before sandbox: so nobody pushes out what matters by having many assets. */
function chooseAssets(owed: readonly AssetOfMode[], holdings: readonly Held[]): readonly AssetOfMode[] {
  const held = holdings.map(({ treasury: { mode, asset } }) => ({ mode, asset }));
  const rest = owed.filter((one) => !held.some((other) => compareAssets(one, other) === 0));
  return [...held, ...rest.toSorted(compareAssets)];
}
