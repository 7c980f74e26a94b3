import { canonicalJson } from "../canonical.ts";
import { parseJsonText } from "../json-text.ts";
import { hexOf, type NoteKey, type Sha256, type Verify } from "../signed-note.ts";
import { type Cosigned, checkAnchor, type OnChain } from "./anchor.ts";
import { problemsOfChecks } from "./checks.ts";
import { problemsOfForm, type Receipt } from "./form.ts";
import { isPage, PAGE_TYPE, pageStatement, partsOfPage } from "./saved-page.ts";
import { type HashJson, shown } from "./say.ts";
import { checkSignature, keysOfJwks, RECEIPT_TYPE, type ReceiptKey } from "./signature.ts";
import { problemsOfTrace } from "./trace.ts";

/**
 * Verifies receipts, without a network (docs/security, "What is checked"). Nothing in this folder needs more than a browser has: the page of a
 * receipt runs the same code as `holdfast receipt verify`.
 */

/** What a receipt is verified against. */
export type Against = {
  /** A JWKS as parsed JSON; null where there is none. Then no signature can be verified. */
  readonly jwks: unknown;
  /** The witnesses whose cosignatures must be there. */
  readonly witnesses: readonly NoteKey[];
};

export type Verdict = {
  /** What does not match, each as a sentence. None means that the receipt holds. */
  readonly problems: readonly string[];
  /** What the receipt says, where it can be read at all. It is true only where there are no problems. */
  readonly receipt: Receipt | null;
  /** The key that the signature names. */
  readonly kid: string | null;
  /** The log in which the settlement is. */
  readonly origin: string | null;
  readonly cosigned: readonly Cosigned[];
  /** Who else signed the checkpoint, with keys that nobody gave. */
  readonly unknownCosigners: readonly string[];
  /** What a chain must have, where the receipt names a block. No chain was asked. */
  readonly onChain: OnChain | null;
};

/**
 * Whose keys verified a file: `given` to the verifier, or `embedded` in the file. Embedded keys prove that the file was not
 * altered after it was signed; they do not prove who signed it.
 */
export type FileVerdict = Verdict & { readonly keys: "given" | "embedded" | "none" };

const NOTHING: Omit<Verdict, "problems"> = {
  receipt: null,
  kid: null,
  origin: null,
  cosigned: [],
  unknownCosigners: [],
  onChain: null,
};
/** Of a file that is wrong throughout, this many problems of a kind are enough. */
const PROBLEMS_MAX = 10;

/**
 * Checks everything that a file proves: a receipt as JSON, or its saved page. Never throws, whatever the text.
 *
 * @param against its JWKS counts before the one that a page brings
 */
export async function verifyFile(text: string, against: Against, sha256: Sha256): Promise<FileVerdict> {
  const given = against.jwks === null ? ("none" as const) : ("given" as const);
  if (!isPage(text)) {
    // JSON may begin with a byte-order mark. In a page it is an alteration like every other.
    const parsed = parseJsonText(text.replace(/^\ufeff/, ""));
    return "problem" in parsed
      ? { ...NOTHING, problems: [`the receipt ${parsed.problem}`], keys: given }
      : { ...(await verifyReceipt(parsed.value, against, sha256)), keys: given };
  }
  const parts = partsOfPage(text);
  if ("problem" in parts) return { ...NOTHING, problems: [`the page ${parts.problem}`], keys: given };
  const jwks = against.jwks ?? parts.jwks;
  const verdict = await verifyReceipt(parts.receipt, { ...against, jwks }, sha256);
  const keys = keysOfJwks(jwks, sha256);
  const { kid, problems } = await checkSignature(
    {
      rest: pageStatement(parts.page, sha256),
      signature: parts.signature,
      type: PAGE_TYPE,
      keys: typeof keys === "string" ? null : keys,
    },
    verifyEd25519,
  );
  const ofPage = problems.map((problem) => `the page was altered: ${problem}`);
  // Of keys that came with it one may be the instance's, and another that of whoever wrote the page around its receipt.
  if (kid !== null && kid !== verdict.kid)
    ofPage.push(
      `the page is signed by the key ${shown(kid)}, but the receipt in it by ${shown(verdict.kid)}`,
    );
  return {
    ...verdict,
    problems: [...verdict.problems, ...ofPage],
    keys: given === "given" ? "given" : "embedded",
  };
}

/** Checks everything that a receipt, as parsed JSON, proves. Never throws. */
export async function verifyReceipt(value: unknown, against: Against, sha256: Sha256): Promise<Verdict> {
  const form = firstOf(problemsOfForm(value));
  if (form.length > 0) return { ...NOTHING, problems: form };
  const receipt = value as Receipt;
  const hashJson: HashJson = (json) => hexOf(sha256(new TextEncoder().encode(canonicalJson(json))));
  const problems = firstOf(problemsOfContent(receipt, hashJson));
  const keys =
    against.jwks === null
      ? "no keys were given, so no signature was verified"
      : keysOfJwks(against.jwks, sha256);
  if (typeof keys === "string") problems.push(keys);
  const known = { keys: typeof keys === "string" ? null : keys, witnesses: against.witnesses };
  const signed = await signatureOf(receipt, known.keys);
  const anchored = await anchorOf(receipt, known, sha256);
  return {
    problems: [...problems, ...signed.problems, ...anchored.problems],
    receipt,
    kid: signed.kid,
    origin: anchored.origin,
    cosigned: anchored.cosigned,
    unknownCosigners: anchored.unknownNames,
    onChain: anchored.onChain,
  };
}

function firstOf(problems: Iterable<string>): string[] {
  const first: string[] = [];
  for (const problem of problems) if (first.push(problem) === PROBLEMS_MAX) break;
  return first;
}

function* problemsOfContent(receipt: Receipt, hashJson: HashJson): Generator<string> {
  const { spec, spec_hash } = receipt.warrant;
  if (spec && hashJson(spec) !== spec_hash) yield "warrant.spec does not have the hash warrant.spec_hash";
  yield* problemsOfTrace(receipt, hashJson);
  yield* problemsOfChecks(receipt);
}

function signatureOf(receipt: Receipt, keys: readonly ReceiptKey[] | null) {
  const { signature, ...rest } = receipt;
  return signature === null
    ? { kid: null, problems: ["the receipt is not signed, so anybody may have written it"] }
    : checkSignature({ rest, signature, type: RECEIPT_TYPE, keys }, verifyEd25519);
}

const NOT_ANCHORED = { origin: null, cosigned: [], unknownNames: [], onChain: null } as const;

function anchorOf(
  receipt: Receipt,
  known: { readonly keys: readonly ReceiptKey[] | null; readonly witnesses: readonly NoteKey[] },
  sha256: Sha256,
) {
  if (receipt.anchor) return checkAnchor(receipt, receipt.anchor, known, { sha256, verify: verifyEd25519 });
  const problems = known.witnesses.map(
    ({ name }) => `the receipt is not in the log yet, so the witness ${JSON.stringify(name)} has not seen it`,
  );
  return { ...NOT_ANCHORED, problems };
}

/** WebCrypto's Ed25519. A key that is no point of the curve verifies nothing. */
export const verifyEd25519: Verify = async (publicKey, message, signature) => {
  const [key, data, proof] = [publicKey, message, signature].map((bytes) => new Uint8Array(bytes));
  if (!key || !data || !proof) return false;
  try {
    const imported = await crypto.subtle.importKey("raw", key, "Ed25519", false, ["verify"]);
    return await crypto.subtle.verify("Ed25519", imported, proof, data);
  } catch (error) {
    // Some browsers do not know Ed25519. That says nothing of the signature.
    if (error instanceof DOMException && error.name === "NotSupportedError")
      throw new Error("this browser knows no Ed25519; use another, or holdfast receipt verify");
    return false;
  }
};
