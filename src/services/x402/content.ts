import {
  type Evidence,
  evidenceHashOf,
  type ReachedEvidence,
  reachedEvidence,
  unreachedEvidence,
} from "../../core/clauses/evidence.ts";
import type { Refusal } from "../../core/errors.ts";
import { FREE_MS_MAX } from "../../core/x402/content.ts";
import type { Purchase } from "../../core/x402/purchase.ts";
import type { Put } from "../../store/change.ts";
import type { Reader } from "../../store/reader.ts";
import type { Content } from "../../store/rows.ts";
import type { Decision } from "../../store/store.ts";
import type { Context } from "../context.ts";

/** The content of a seller's answer as it is stored: its bytes, once for each hash. */
export const keptContent = (evidence: ReachedEvidence): Content => ({
  hash: evidenceHashOf(evidence),
  bytes: evidence.body,
});

/**
 * The evidence in a stored answer.
 *
 * @throws where its content is missing, which would be a fault: it is kept until the purchase has ended
 */
export async function evidenceKept(
  reader: Reader,
  { responseStatus, responseHash, responseLastModifiedAt }: Purchase,
): Promise<Evidence> {
  if (responseHash === null) return unreachedEvidence("source_unreachable");
  const body = await reader.contents.get(responseHash);
  if (!body) throw new Error(`the content ${responseHash} is missing`);
  return reachedEvidence({ status: responseStatus, body, lastModifiedAt: responseLastModifiedAt });
}

/** A purchase that has ended gives up its content. The engine deletes it, unless another one keeps it too. */
export const givenUp = (purchase: Purchase): Put => ({
  kind: "purchase",
  before: purchase,
  row: { ...purchase, contentBytes: 0 },
});

/** How many contents are given up together: each may have 10 MiB. */
const FORGET_STEP = 4;

/**
 * Gives up a few contents that are not replayed any more: those that were bought before a time, and those that cost nothing and
 * are older than they may become, by the clock. If that is wrong, a replay only lacks its body.
 *
 * @returns how many
 */
export async function forgetContents(ctx: Context, boughtBefore: number): Promise<number> {
  const now = ctx.now();
  const old = await ctx.store.read((reader) =>
    reader.purchases.withOldContent({ boughtBefore, freeBefore: now - FREE_MS_MAX, now }, FORGET_STEP),
  );
  const forgotten = await Promise.all(old.map((purchase) => forgetContent(ctx, purchase)));
  return forgotten.filter((one) => one === true).length;
}

const forgetContent = (ctx: Context, old: Purchase): Promise<boolean | Refusal> =>
  ctx.store.execute({
    scope: old,
    needs: { purchase: old.id },
    decide: ({ purchase }): Decision<boolean> =>
      purchase?.phase === "ended" && purchase.contentBytes > 0
        ? { answer: true, change: { put: [givenUp(purchase)] } }
        : { answer: false },
  });
