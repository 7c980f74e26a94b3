import {
  type Evidence,
  evidenceHashOf,
  type ReachedEvidence,
  reachedEvidence,
  unreachedEvidence,
} from "../../core/clauses/evidence.ts";
import type { Purchase } from "../../core/x402/purchase.ts";
import type { Content } from "../../store/store.ts";
import type { Context } from "../context.ts";

/** What a seller delivered, as it is kept: its bytes, once, by their hash. */
export const keptContent = (evidence: ReachedEvidence): Content => ({
  hash: evidenceHashOf(evidence),
  bytes: evidence.body,
});

/** The evidence of an answer that was kept. */
export function evidenceKept(
  ctx: Context,
  { responseStatus, responseHash, responseLastModifiedAt }: Purchase,
): Evidence {
  if (responseHash === null) return unreachedEvidence("source_unreachable");
  const body = ctx.store.reader.contents.get(responseHash);
  if (!body) throw new Error(`the content ${responseHash} is missing`);
  return reachedEvidence({ status: responseStatus, body, lastModifiedAt: responseLastModifiedAt });
}
