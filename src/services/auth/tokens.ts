import type { Context } from "../context.ts";

const TOKEN_BYTES = 32;

/** 256 random bits, base64url: what a cookie, a one-time link, an approval or a WebAuthn challenge is. */
export const newToken = ({ randomByte }: Pick<Context, "randomByte">): string =>
  Buffer.from(Array.from({ length: TOKEN_BYTES }, randomByte)).toString("base64url");
