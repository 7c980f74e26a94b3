/** What is used of the package, which has no types of its own. */
declare module "http_ece" {
  import type { ECDH } from "node:crypto";

  /** Encrypts by RFC 8188 for the receiver of RFC 8291. `dh` and `authSecret` are base64url. */
  export function encrypt(
    text: Buffer,
    parameters: {
      readonly version: "aes128gcm";
      readonly salt: Buffer;
      readonly privateKey: ECDH;
      readonly dh: string;
      readonly authSecret: string;
    },
  ): Buffer;
}
