import { sha256Bytes } from "../core/canonical.ts";
import { isUri, type SigstoreIdentity } from "../core/source-key.ts";

/**
 * Sigstore bundles, verified offline by the Sigstore project's own packages (docs/security, "Signed sources"). They take 50 ms
 * to load, so only who has a trusted root does, by `require`: the bundler would put an `import` into the start.
 */
const packages = () => ({
  ...(require("@sigstore/bundle") as typeof import("@sigstore/bundle")),
  ...(require("@sigstore/protobuf-specs") as typeof import("@sigstore/protobuf-specs")),
  ...(require("@sigstore/verify") as typeof import("@sigstore/verify")),
});
type Packages = ReturnType<typeof packages>;
type Bundle = ReturnType<Packages["bundleFromJSON"]>;

export type BundleQuestion = {
  /** The bundle's JSON, as it came. */
  readonly bundle: string;
  /** The bytes that it is said to sign. */
  readonly body: Uint8Array;
  readonly identities: readonly SigstoreIdentity[];
};

export type SigstoreVerifier = {
  /**
   * Which of the identities has signed the bytes; null where none has. It never throws, and a hostile bundle may keep it busy for
   * hours: the packages parse bytes that look like DER again and again, twice as often with each such place. So it runs
   * where it can be ended (`Evaluator.verifyBundle`).
   */
  signerOf(question: BundleQuestion): SigstoreIdentity | null;
};

/** What a bundle may hold: many signatures would take long to verify, and whoever wrote it is a stranger. */
const ENTRIES_MAX = 4;
const CHECKPOINT_LINES_MAX = 32;

/** Extensions of a certificate: whom it is for, and who says so (in the form that Fulcio has written since 2022). */
const SUBJECT_ALTERNATIVE_NAME = "2.5.29.17";
const ISSUER = "1.3.6.1.4.1.57264.1.8";
/** Tags of DER. */
const SEQUENCE = 0x30;
const UTF8_STRING = 0x0c;
const EMAIL = 0x81;
const URI = 0x86;

/**
 * @param root a trusted root: the text of a `trusted_root.json`
 * @throws where the text is not a trusted root
 */
export function createSigstoreVerifier(root: string): SigstoreVerifier {
  const made = packages();
  const trusted = made.TrustedRoot.fromJSON(JSON.parse(root));
  const { certificateAuthorities, ctlogs, tlogs } = trusted;
  // The parser passes over what it does not know, so any JSON is a root to it.
  if ([certificateAuthorities, ctlogs, tlogs].some(({ length }) => length === 0))
    throw new Error("it names no certificate authority, no certificate log or no transparency log");
  const verifier = new made.Verifier(made.toTrustMaterial(trusted));
  return {
    signerOf({ bundle: text, body, identities }) {
      try {
        const bundle = made.bundleFromJSON(JSON.parse(text));
        if (!isOf(made, bundle, body)) return null;
        const artifact = Buffer.from(body.buffer, body.byteOffset, body.byteLength);
        const { identity } = verifier.verify(made.toSignedEntity(bundle, artifact));
        const says = (id: string, value: Uint8Array): boolean =>
          identity?.oids?.find(({ oid }) => oid?.id.join(".") === id)?.value.equals(value) ?? false;
        return (
          identities.find(
            (one) => says(SUBJECT_ALTERNATIVE_NAME, nameOf(one)) && says(ISSUER, issuerOf(one)),
          ) ?? null
        );
      } catch {
        // Whatever is wrong with it, nobody is known to have signed.
        return null;
      }
    },
  };
}

/** Whether it is a bundle of the kind that is verified here, over these bytes: of no other would the verifier compare them. */
function isOf(made: Packages, bundle: Bundle, body: Uint8Array): boolean {
  const { mediaType, content, verificationMaterial } = bundle;
  const { tlogEntries, timestampVerificationData } = verificationMaterial;
  const timestamps = timestampVerificationData?.rfc3161Timestamps ?? [];
  const checkpoints = tlogEntries.map(({ inclusionProof }) => inclusionProof?.checkpoint?.envelope ?? "");
  if (mediaType !== made.BUNDLE_V03_MEDIA_TYPE || verificationMaterial.content.$case !== "certificate")
    return false;
  if (tlogEntries.length > ENTRIES_MAX || timestamps.length > ENTRIES_MAX) return false;
  if (checkpoints.some((text) => text.split("\n").length > CHECKPOINT_LINES_MAX)) return false;
  if (content.$case !== "messageSignature") return false;
  const { algorithm, digest } = content.messageSignature.messageDigest;
  return algorithm === made.HashAlgorithm.SHA2_256 && digest.equals(sha256Bytes(body));
}

/**
 * The extensions that a certificate of an identity has, whole. What the verifier reads out of them is not compared: it
 * drops a bit of every byte that is not ASCII, so that one name could pass for another.
 */
const nameOf = ({ subject }: SigstoreIdentity): Uint8Array =>
  der(SEQUENCE, der(isUri(subject) ? URI : EMAIL, Buffer.from(subject)));
const issuerOf = ({ issuer }: SigstoreIdentity): Uint8Array => der(UTF8_STRING, Buffer.from(issuer));

/** A value in DER. */
function der(tag: number, value: Uint8Array): Buffer {
  const { length } = value;
  const lengths =
    length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.of(tag, ...lengths), value]);
}
