import {
  type Evidence,
  evidenceHashOf,
  type ReachedEvidence,
  reachedEvidence,
  unreachedEvidence,
} from "../../core/clauses/evidence.ts";
import type { Purchase } from "../../core/x402/purchase.ts";
import type { Reader } from "../../store/reader.ts";
import type { Content } from "../../store/rows.ts";

/** What a seller delivered, as it is kept: its bytes, once, by their hash. */
export const keptContent = (evidence: ReachedEvidence): Content => ({
  hash: evidenceHashOf(evidence),
  bytes: evidence.body,
});

/**
 * The evidence of an answer that was kept.
 *
 * @throws where its content is missing, which stays as long as its purchase has not ended
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
