import { parseJsonText } from "../json-text.ts";

/** x402 carries JSON in headers as base64 of its UTF-8. */

export type JsonObject = Readonly<Record<string, unknown>>;

export const isJsonObject = (value: unknown): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const HEADER_LENGTH_MAX = 64 * 1024;
const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/;

export const writeJsonHeader = (value: JsonObject): string =>
  Buffer.from(JSON.stringify(value)).toString("base64");

/** The JSON in a header's text, or the problem with it, in words that follow the header's name. */
export function readJsonHeader(text: string): { readonly value: unknown } | { readonly problem: string } {
  if (text.length > HEADER_LENGTH_MAX) return { problem: "is longer than 64 kB" };
  if (!BASE64.test(text)) return { problem: "is not base64" };
  return readJson(Buffer.from(text, "base64"));
}

/** The JSON in bytes of UTF-8, or the problem with it, in words that follow a name. */
export function readJson(bytes: Uint8Array): { readonly value: unknown } | { readonly problem: string } {
  try {
    return parseJsonText(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch {
    return { problem: "is not UTF-8" };
  }
}
