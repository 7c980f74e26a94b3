/** What of the passkey library is used. In a file of its own, so that the executable loads it only when it is asked for. */
export { verifyAuthenticationResponse, verifyRegistrationResponse } from "@simplewebauthn/server";
export { decodeAttestationObject, isoBase64URL } from "@simplewebauthn/server/helpers";
