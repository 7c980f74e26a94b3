import { expect, test } from "bun:test";
import { join } from "node:path";
import { reachedEvidence } from "../../src/core/clauses/evidence.ts";
import { createEvaluator } from "../../src/platform/evaluator.ts";
import { benchSchemas } from "../../src/resources/bench-schemas.ts";

const COMMAND = [process.execPath, join(import.meta.dir, "../support/evaluator-main.ts")];
const LENGTH = 10 * 1024 * 1024;

const smallObjects = (): string => `[${"{},".repeat(LENGTH / 3 - 2)}{}]`;

/** Objects in objects, each with one name that no other has. */
function namesOfTheirOwn(): string {
  const depth = 100;
  const parts: string[] = [];
  let id = 0;
  for (let size = 0; size < LENGTH - 4_000; id += depth) {
    const names = Array.from({ length: depth }, (_, level) => `{"${(id + level).toString(36)}":`);
    const nested = `${names.join("")}0${"}".repeat(depth)},`;
    parts.push(nested);
    size += nested.length;
  }
  return `[${parts.join("")}0]`;
}

/** Of many that were tried, these two take the most memory: 360 and 450 MiB. */
for (const make of [smallObjects, namesOfTheirOwn]) {
  test(`10 MiB of JSON are evaluated within the memory of evaluators: ${make.name}`, async () => {
    const evaluator = createEvaluator({
      command: COMMAND,
      clauseTimeoutMs: 60_000,
      waitTimeoutMs: 60_000,
      size: 0,
    });
    try {
      const body = new TextEncoder().encode(make());
      expect(body.length).toBeGreaterThan(LENGTH - 5_000);
      const { passed, reasonCodes } = await evaluator.evaluate({
        party: { organisationId: "acme", mode: "live" },
        clauses: [{ kind: "json.schema", schema: "array" }],
        evidence: reachedEvidence({ status: 200, body }),
        schemas: benchSchemas,
        now: 0,
      });
      expect([passed, reasonCodes]).toEqual([true, []]);
    } finally {
      evaluator.close();
    }
  }, 60_000);
}
