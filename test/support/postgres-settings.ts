import { generateKeyPairSync, randomBytes } from "node:crypto";

/** Settings by which an executable keeps its ledger in a database, with keys of its own: without a data folder they come from the environment. */
export function postgresSettings(url: string): Record<string, string> {
  const key = () => randomBytes(32).toString("base64");
  return {
    HOLDFAST_DATABASE: url,
    HOLDFAST_MASTER_KEY: key(),
    HOLDFAST_PUSH_KEY: key(),
    HOLDFAST_WITNESS_KEY: key(),
    HOLDFAST_SIGNING_KEY: generateKeyPairSync("ed25519")
      .privateKey.export({ type: "pkcs8", format: "pem" })
      .toString(),
  };
}
