import { beforeAll, describe, expect, test } from "bun:test";
import type { SigstoreIdentity } from "../../src/core/source-key.ts";
import { createSigstoreVerifier, type SigstoreVerifier } from "../../src/platform/sigstore.ts";
import { createTestSigstore, type TestBundle, type TestSigstore } from "../support/sigstore.ts";

/** Sigstore bundles (docs/security, "Signed sources"), with a Sigstore of our own. */

const BODY = Buffer.from('{"ok":1}');
const ME: SigstoreIdentity = { issuer: "https://issuer.example", subject: "https://a.example/me" };
const OTHER: SigstoreIdentity = { ...ME, subject: "https://a.example/other" };

let sigstore: TestSigstore;
let verifier: SigstoreVerifier;
let bundle: TestBundle;
beforeAll(async () => {
  sigstore = await createTestSigstore();
  verifier = createSigstoreVerifier(sigstore.root);
  bundle = await sigstore.bundleOf(BODY, ME);
});

const signerOf = (
  given: unknown = bundle,
  identities: readonly SigstoreIdentity[] = [OTHER, ME],
  body: Uint8Array = BODY,
) =>
  verifier.signerOf({ bundle: typeof given === "string" ? given : JSON.stringify(given), body, identities });

/** The bundle with a change. */
const changed = (change: (bundle: TestBundle) => void): TestBundle => {
  const copy = structuredClone(bundle);
  change(copy);
  return copy;
};
/** The same text with one character of base64 changed in its middle. */
const flipped = (text: string): string => {
  const at = text.length >> 1;
  return `${text.slice(0, at)}${text[at] === "A" ? "B" : "A"}${text.slice(at + 1)}`;
};

test("a bundle that one of the identities has signed names it, every time", () => {
  expect([signerOf(), signerOf()]).toEqual([ME, ME]);
  // Bytes in the middle of a larger buffer.
  const around = Buffer.concat([Buffer.from("x"), BODY, Buffer.from("x")]);
  expect(signerOf(bundle, [ME], around.subarray(1, -1))).toEqual(ME);
});

describe("nobody has signed", () => {
  test.each<[string, SigstoreIdentity]>([
    ["another subject", OTHER],
    ["another issuer", { ...ME, issuer: "https://other.example" }],
    ["a subject that the right one begins with", { ...ME, subject: "https://a.example/m" }],
    ["a subject that fits as a pattern", { ...ME, subject: "https://a.example/m." }],
    ["an issuer that the right one ends with", { ...ME, issuer: "ssuer.example" }],
  ])("where %s is registered", (_, identity) => {
    expect(signerOf(bundle, [identity])).toBeNull();
  });

  test("where none is registered", () => {
    expect(signerOf(bundle, [])).toBeNull();
  });

  test("other bytes, also where the bundle is made to say their digest", () => {
    const other = Buffer.from('{"ok":2}');
    expect(signerOf(bundle, [ME], other)).toBeNull();
    const digest = new Bun.CryptoHasher("sha256").update(other).digest("base64");
    const claiming = changed((copy) => {
      copy.messageSignature.messageDigest.digest = digest;
    });
    expect(signerOf(claiming, [ME], other)).toBeNull();
  });

  test("where the root is another", async () => {
    const { root } = await createTestSigstore();
    const elsewhere = createSigstoreVerifier(root);
    expect(elsewhere.signerOf({ bundle: JSON.stringify(bundle), body: BODY, identities: [ME] })).toBeNull();
  });

  test("where a name is not ASCII, and the same without its highest bits", async () => {
    // The verifier reads both as `https://a.example/CB`.
    const twin = { ...ME, subject: "https://a.example/\u00c3\u00c2" };
    const expected = { ...ME, subject: "https://a.example/CB" };
    expect(signerOf(await sigstore.bundleOf(BODY, twin), [expected])).toBeNull();
    expect(signerOf(await sigstore.bundleOf(BODY, expected), [expected])).toEqual(expected);
  });

  const entry = (copy: TestBundle) => copy.verificationMaterial.tlogEntries[0]!;
  const ALTERED: Readonly<Record<string, (copy: TestBundle) => unknown>> = {
    "the signature": ({ messageSignature }) => {
      messageSignature.signature = flipped(messageSignature.signature);
    },
    "the certificate": ({ verificationMaterial: { certificate } }) => {
      certificate.rawBytes = flipped(certificate.rawBytes);
    },
    "the log's entry": (copy) => {
      entry(copy).canonicalizedBody = flipped(entry(copy).canonicalizedBody);
    },
    "the log's time": (copy) => {
      entry(copy).integratedTime = String(Number(entry(copy).integratedTime) + 1);
    },
    "the log's promise": (copy) => {
      const promise = entry(copy).inclusionPromise;
      promise.signedEntryTimestamp = flipped(promise.signedEntryTimestamp);
    },
    "the log's checkpoint": (copy) => {
      const { checkpoint } = entry(copy).inclusionProof;
      checkpoint.envelope = checkpoint.envelope.replace("\n1\n", "\n2\n");
    },
    "the place of the entry, which is gone": ({ verificationMaterial }) => {
      verificationMaterial.tlogEntries = [];
    },
    "the entry, which is there twice": ({ verificationMaterial: { tlogEntries } }) =>
      tlogEntries.push(tlogEntries[0]!),
    "the time, which nobody promises": (copy) => {
      delete (entry(copy) as Partial<TestBundle["verificationMaterial"]["tlogEntries"][number]>)
        .inclusionPromise;
    },
    "the media type": (copy) => {
      copy.mediaType = "application/vnd.dev.sigstore.bundle+json;version=0.2";
    },
    "the digest's algorithm": ({ messageSignature: { messageDigest } }) => {
      messageDigest.algorithm = "SHA2_512";
    },
    "the checkpoint, which is very long": (copy) => {
      entry(copy).inclusionProof.checkpoint.envelope += "— x AAAA\n".repeat(40);
    },
    "what was signed, which is an envelope": (copy) => {
      const { signature } = copy.messageSignature;
      const dsseEnvelope = {
        payload: BODY.toString("base64"),
        payloadType: "x",
        signatures: [{ sig: signature }],
      };
      Object.assign(copy, { messageSignature: undefined, dsseEnvelope });
    },
    "whose key it is, which is nobody's": ({ verificationMaterial }) =>
      Object.assign(verificationMaterial, { certificate: undefined, publicKey: { hint: "key" } }),
  };
  test.each(Object.keys(ALTERED))("with another %s", (what) => {
    expect(signerOf(changed((copy) => ALTERED[what]?.(copy)))).toBeNull();
  });

  test.each(["", "x", "null", "[]", "{}", '{"mediaType":1}', "\uFEFF{}", "[[[["])(
    "where the bundle is %p",
    (text) => {
      expect(signerOf(text)).toBeNull();
    },
  );
});

test("a root is refused that is none, or that trusts nobody", () => {
  for (const text of ["", "x", "[]", "{}", "null", '{"tlogs":1}'])
    expect(() => createSigstoreVerifier(text)).toThrow();
  const { certificateAuthorities: _, ...rest } = JSON.parse(sigstore.root);
  expect(() => createSigstoreVerifier(JSON.stringify(rest))).toThrow("no certificate authority");
});
