import { logFault } from "./log.ts";

/** What a certificate's check says where nobody who is trusted vouches for the other side. */
const UNVERIFIED =
  /^(CERT_|ERR_TLS_CERT_|DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT_|UNABLE_TO_(GET_ISSUER|VERIFY)_)/;

/** The code of a failed request; empty where there is none. */
export const codeOf = (error: unknown): string => {
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === "string" ? code : "";
};

/** Logs that a request failed because of the other side's certificate, where that is so. The request has failed either way. */
export function logUnverified(error: unknown, other: string): void {
  const code = codeOf(error);
  if (UNVERIFIED.test(code)) logFault("a certificate could not be verified", code, { other });
}
