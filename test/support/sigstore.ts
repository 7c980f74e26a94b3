import { createHash, generateKeyPairSync, sign } from "node:crypto";
import { initializeCA, initializeCTLog, initializeTLog } from "@sigstore/mock";
import type { SigstoreIdentity } from "../../src/core/source-key.ts";

/** A Sigstore of our own, of the Sigstore project's mock: it certifies, logs, and has a trusted root. */

export type TestSigstore = {
  /** The text of its `trusted_root.json`. */
  readonly root: string;
  /** A bundle over some bytes, for an identity whose subject is a URI. */
  bundleOf(body: Uint8Array, identity: SigstoreIdentity): Promise<TestBundle>;
};

export type TestBundle = {
  mediaType: string;
  verificationMaterial: {
    certificate: { rawBytes: string };
    tlogEntries: {
      logIndex: string;
      integratedTime: string;
      canonicalizedBody: string;
      inclusionPromise: { signedEntryTimestamp: string };
      inclusionProof: { rootHash: string; checkpoint: { envelope: string } };
    }[];
  };
  messageSignature: { messageDigest: { algorithm: string; digest: string }; signature: string };
};

const FULCIO_ISSUER = "1.3.6.1.4.1.57264.1.8";
const REKOR_URL = "https://rekor.example";
const BUNDLE_TYPE = "application/vnd.dev.sigstore.bundle.v0.3+json";
const ROOT_TYPE = "application/vnd.dev.sigstore.trustedroot+json;version=0.1";

const newKeys = () => generateKeyPairSync("ec", { namedCurve: "prime256v1" });
const bytesOf = ({ buffer, byteOffset, byteLength }: ArrayBufferView) =>
  Buffer.from(buffer as ArrayBuffer, byteOffset, byteLength);
const base64 = (bytes: ArrayBufferView | string): string =>
  (typeof bytes === "string" ? Buffer.from(bytes) : bytesOf(bytes)).toString("base64");
const sha256Of = (bytes: ArrayBufferView): Buffer => createHash("sha256").update(bytesOf(bytes)).digest();
const validFor = { start: "2020-01-01T00:00:00Z" };

export async function createTestSigstore(): Promise<TestSigstore> {
  const ctLog = await initializeCTLog(newKeys());
  const ca = await initializeCA(newKeys(), ctLog);
  const log = await initializeTLog(REKOR_URL, newKeys());
  const logInstance = (baseUrl: string, publicKey: ArrayBufferView, keyId: ArrayBufferView) => ({
    baseUrl,
    hashAlgorithm: "SHA2_256",
    publicKey: { rawBytes: base64(publicKey), keyDetails: "PKIX_ECDSA_P256_SHA_256", validFor },
    logId: { keyId: base64(keyId) },
  });
  const root = {
    mediaType: ROOT_TYPE,
    certificateAuthorities: [
      {
        subject: { organization: "example", commonName: "example" },
        uri: "https://fulcio.example",
        certChain: { certificates: [{ rawBytes: base64(ca.rootCertificate) }] },
        validFor,
      },
    ],
    tlogs: [logInstance(REKOR_URL, log.publicKey, sha256Of(log.publicKey))],
    ctlogs: [logInstance("https://ct.example", ctLog.publicKey, ctLog.logID)],
    timestampAuthorities: [],
  };
  return {
    root: JSON.stringify(root),
    async bundleOf(body, { issuer, subject }) {
      const { publicKey, privateKey } = newKeys();
      const certificate = await ca.issueCertificate({
        publicKey: publicKey.export({ format: "der", type: "spki" }),
        subjectAltName: subject,
        extensions: [{ oid: FULCIO_ISSUER, value: issuer }],
      });
      const digest = sha256Of(body);
      const signature = base64(sign("sha256", body, privateKey));
      const pem = `-----BEGIN CERTIFICATE-----\n${base64(certificate)}\n-----END CERTIFICATE-----\n`;
      const logged = Object.values(
        await log.log({
          apiVersion: "0.0.1",
          kind: "hashedrekord",
          spec: {
            data: { hash: { algorithm: "sha256", value: digest.toString("hex") } },
            signature: { content: signature, publicKey: { content: base64(pem) } },
          },
        }),
      )[0] as Logged;
      return {
        mediaType: BUNDLE_TYPE,
        verificationMaterial: {
          certificate: { rawBytes: base64(certificate) },
          tlogEntries: [entryOf(logged)],
        },
        messageSignature: { messageDigest: { algorithm: "SHA2_256", digest: base64(digest) }, signature },
      };
    },
  };
}

/** An entry as Rekor answers it. */
type Logged = {
  readonly body: string;
  readonly integratedTime: number;
  readonly logID: string;
  readonly logIndex: number;
  readonly verification: {
    readonly signedEntryTimestamp: string;
    readonly inclusionProof: {
      readonly logIndex: number;
      readonly treeSize: number;
      readonly rootHash: string;
      readonly checkpoint: string;
    };
  };
};

/** The same as a bundle has it. */
const entryOf = ({ body, integratedTime, logID, logIndex, verification }: Logged) => ({
  logIndex: String(logIndex),
  logId: { keyId: base64(Buffer.from(logID, "hex")) },
  kindVersion: { kind: "hashedrekord", version: "0.0.1" },
  integratedTime: String(integratedTime),
  inclusionPromise: { signedEntryTimestamp: verification.signedEntryTimestamp },
  inclusionProof: {
    logIndex: String(verification.inclusionProof.logIndex),
    rootHash: base64(Buffer.from(verification.inclusionProof.rootHash, "hex")),
    treeSize: String(verification.inclusionProof.treeSize),
    hashes: [],
    checkpoint: { envelope: verification.inclusionProof.checkpoint },
  },
  canonicalizedBody: body,
});
