import { ALGORITHMS, type RelyingParty } from "../core/passkey.ts";

/**
 * A browser's answer to a challenge, as JSON (WebAuthn Level 3: RegistrationResponseJSON,
 * AuthenticationResponseJSON).
 */
export type RegistrationResponse = {
  readonly id: string;
  readonly rawId: string;
  readonly type: "public-key";
  readonly response: {
    readonly clientDataJSON: string;
    readonly attestationObject: string;
    readonly transports?: readonly string[];
  };
};
export type AssertionResponse = {
  readonly id: string;
  readonly rawId: string;
  readonly type: "public-key";
  readonly response: {
    readonly clientDataJSON: string;
    readonly authenticatorData: string;
    readonly signature: string;
    readonly userHandle?: string | null;
  };
};

export type RegisteredCredential = {
  readonly id: string;
  /** COSE key, base64url. */
  readonly publicKey: string;
  readonly counter: number;
};

/** Why something did not verify, in words. */
export type Problem = { readonly problem: string };

export type PasskeyVerifier = {
  /**
   * The credential of a registration, where it answers the challenge and the authenticator has verified the
   * person.
   */
  verifyRegistration(
    response: RegistrationResponse,
    challenge: string,
    party: RelyingParty,
  ): Promise<RegisteredCredential | Problem>;
  /**
   * The new signature counter of an assertion, where it answers the challenge and the authenticator has
   * verified the person.
   */
  verifyAssertion(
    response: AssertionResponse,
    challenge: string,
    party: RelyingParty,
    credential: RegisteredCredential,
  ): Promise<{ readonly counter: number } | Problem>;
};

/**
 * The library takes some 100 ms to load from source, so only the first use of a passkey loads it. By `require`, since the
 * compiled executable runs the modules of a dynamic import in a wrong order: one needs what a later one prepares.
 */
const library = (): typeof import("./webauthn.ts") => require("./webauthn.ts");

export function createPasskeyVerifier(): PasskeyVerifier {
  return {
    verifyRegistration(response, challenge, party) {
      const { verifyRegistrationResponse } = library();
      return orProblem(async () => {
        refuseCertificates(response.response.attestationObject);
        const { verified, registrationInfo } = await verifyRegistrationResponse({
          response: { ...response, response: attested(response), clientExtensionResults: {} },
          expectedChallenge: challenge,
          expectedOrigin: party.origin,
          expectedRPID: party.id,
          requireUserVerification: true,
          supportedAlgorithmIDs: [...ALGORITHMS],
        });
        if (!verified) throw new Error("The attestation does not verify");
        const { id, publicKey, counter } = registrationInfo.credential;
        return { id, publicKey: Buffer.from(publicKey).toString("base64url"), counter };
      });
    },
    verifyAssertion(response, challenge, party, credential) {
      const { verifyAuthenticationResponse } = library();
      return orProblem(async () => {
        const { verified, authenticationInfo } = await verifyAuthenticationResponse({
          response: { ...response, response: signedBy(response), clientExtensionResults: {} },
          expectedChallenge: challenge,
          expectedOrigin: party.origin,
          expectedRPID: party.id,
          requireUserVerification: true,
          credential: {
            id: credential.id,
            publicKey: new Uint8Array(Buffer.from(credential.publicKey, "base64url")),
            counter: credential.counter,
          },
        });
        if (!verified) throw new Error("The signature does not verify");
        return { counter: authenticationInfo.newCounter };
      });
    },
  };
}

const attested = ({ response }: RegistrationResponse) => ({
  clientDataJSON: response.clientDataJSON,
  attestationObject: response.attestationObject,
});

const signedBy = ({ response }: AssertionResponse) => ({
  clientDataJSON: response.clientDataJSON,
  authenticatorData: response.authenticatorData,
  signature: response.signature,
});

/**
 * Holdfast asks for no certificate, and refuses one that comes anyway: the library would fetch the revocation list that the
 * certificate names, from any address.
 */
function refuseCertificates(attestationObject: string): void {
  const { decodeAttestationObject, isoBase64URL } = library();
  const attestation = decodeAttestationObject(isoBase64URL.toBuffer(attestationObject));
  const format = attestation.get("fmt");
  const isSelfSigned = format === "packed" && attestation.get("attStmt").get("x5c") === undefined;
  if (format !== "none" && !isSelfSigned) throw new Error(`The attestation format ${format} is not accepted`);
}

/** The result of a check, or the problem: the library throws on anything wrong that a browser sends. */
async function orProblem<Value>(verify: () => Promise<Value>): Promise<Value | Problem> {
  try {
    return await verify();
  } catch (error) {
    return { problem: error instanceof Error ? error.message : String(error) };
  }
}
