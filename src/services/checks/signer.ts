import type { SeenAnswer } from "../../core/capsule.ts";
import type { Signer } from "../../core/source-key.ts";
import type { Context } from "../context.ts";

/**
 * The registered key that the source has signed its answer with; null where nobody is known to have (README, "Signed
 * sources"). A signature is never needed: without one the check is what this instance has observed.
 *
 * @param asked who asked, how, and when the answer came
 */
export async function signerOf(
  ctx: Context,
  asked: { readonly organisationId: string; readonly method: string; readonly now: number },
  answer: SeenAnswer,
): Promise<Signer | null> {
  const last = answer.hops.at(-1);
  if (!last || !answer.holdsItsDigest) return null;
  const { origin } = new URL(last.url);
  const keys = await ctx.store.read((reader) => reader.sourceKeys.of(asked.organisationId, origin));
  return ctx.signerAmong({ ...asked, answer, keys: keys.map(({ signer }) => signer) });
}
