import { expect, spyOn, test } from "bun:test";
import { verifyingBundles } from "../../src/app/sigstore.ts";
import { EvaluatorBusy } from "../../src/platform/evaluator-pool.ts";

const QUESTION = { bundle: "{}", body: Buffer.from(""), identities: [] };
const PARTY = { organisationId: "org", mode: "live" } as const;

test("where no evaluator is free nobody has signed, and the log says why", async () => {
  const lines: string[] = [];
  const log = spyOn(process.stderr, "write").mockImplementation((line) => lines.push(String(line)) > 0);
  const busy = { verifyBundle: () => Promise.reject(new EvaluatorBusy("all children are busy")) };
  try {
    expect(await verifyingBundles(busy, "{}").signerOf(QUESTION, PARTY)).toBeNull();
  } finally {
    log.mockRestore();
  }
  expect(lines.join("")).toContain('"why":"rate_limit_exceeded"');
});
