import type { SeenAnswer } from "../../core/capsule.ts";
import type { Evidence } from "../../core/clauses/evidence.ts";
import type { Party } from "../../core/places.ts";
import { isSigstore, type PublicJwk, type Signer, type SigstoreIdentity } from "../../core/source-key.ts";
import { checkSourceUrl } from "../../core/source-url.ts";
import type { Context } from "../context.ts";

/** Who has signed an answer, and the bundle that shows it; null where the answer itself does. */
export type SourceSignature = { readonly signer: Signer; readonly bundle: string | null };

/** Who asked, how, and when the answer came. */
export type Asked = {
  readonly party: Party;
  readonly method: "GET" | "POST";
  readonly now: number;
  /** Fetches what is beside the answer; null where the source is asked for nothing more. */
  readonly fetchBeside: ((url: string) => Promise<Uint8Array | null>) | null;
};

/**
 * Who of those that are registered has signed the source's answer; null where nobody is known to have (docs/security,
 * "Signed sources"). A signature is never needed: without one the check is what this instance has observed.
 */
export async function signatureOf(
  ctx: Context,
  asked: Asked,
  { answer, evidence }: { readonly answer: SeenAnswer; readonly evidence: Evidence },
): Promise<SourceSignature | null> {
  const [first, last] = [answer.hops.at(0), answer.hops.at(-1)];
  // Of an answer that could not be read, nothing was judged.
  if (!first || !last || !evidence.reached) return null;
  if (!(answer.holdsItsDigest || mayHaveBundle(ctx, asked, evidence))) return null;
  const { origin } = new URL(last.url);
  // A receipt names the origin that was asked. Whoever redirects to another has not signed what that answers.
  if (new URL(first.url).origin !== origin) return null;
  const keys = await ctx.store.read((reader) => reader.sourceKeys.of(asked.party.organisationId, origin));
  const signers = keys.map((key) => key.signer);
  const isKey = (signer: Signer): signer is PublicJwk => !isSigstore(signer);
  const { method, now } = asked;
  const signer = await ctx.signerAmong({ method, now, answer, keys: signers.filter(isKey) });
  if (signer) return { signer, bundle: null };
  return signedBundle(ctx, asked, evidence, last.url, signers.filter(isSigstore));
}

/** A bundle signs bytes, and no status: beside anything but 200 it would say that the source has given them so. */
const mayHaveBundle = ({ sigstore }: Context, { fetchBeside }: Asked, evidence: Evidence): boolean =>
  sigstore !== null && fetchBeside !== null && evidence.reached && evidence.status === 200;

/** The bundle beside an answer, where one of the identities has signed it. */
async function signedBundle(
  ctx: Context,
  asked: Asked,
  evidence: Evidence,
  answered: string,
  identities: readonly SigstoreIdentity[],
): Promise<SourceSignature | null> {
  const { sigstore } = ctx;
  if (identities.length === 0 || !mayHaveBundle(ctx, asked, evidence) || !evidence.reached) return null;
  const url = new URL(answered);
  url.pathname += ".sigstore.json";
  const bytes = checkSourceUrl(url.href) === null ? await asked.fetchBeside?.(url.href) : null;
  const bundle = bytes ? textOf(bytes) : null;
  if (bundle === null) return null;
  const signer = await sigstore?.signerOf({ bundle, body: evidence.body, identities }, asked.party);
  return signer ? { signer, bundle } : null;
}

/** Null where the bytes are no UTF-8. */
function textOf(bytes: Uint8Array): string | null {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return null;
  }
}
