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
