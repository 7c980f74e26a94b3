import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { checkForm } from "../../src/core/check.ts";
import type { ClauseResult } from "../../src/core/clauses/evidence.ts";
import type { SourceCode } from "../../src/core/clauses/reason-codes.ts";
import type { JsonSchema } from "../../src/core/clauses/schema.ts";
import type { Wire } from "../../src/core/form.ts";

/** The cases of `cases/`, written from the page on evaluation. */

/** What goes in and what comes out, as the page says it. */
export type Verdict = {
  readonly name: string;
  readonly clauses: readonly unknown[];
  readonly schemas?: Readonly<Record<string, JsonSchema>>;
  readonly evidence: {
    /** There was no answer. The rest is then what the bench supplies. */
    readonly failure?: SourceCode;
    readonly status?: number;
    readonly body?: string;
    readonly body_base64?: string;
    readonly last_modified?: string;
    readonly generated_at?: string;
    readonly uptime_ratio?: number;
    readonly emitted_topics?: readonly string[];
    readonly judge_score?: number;
  };
  /** The indexes of the clauses that took too long. */
  readonly timed_out?: readonly number[];
  readonly now: string;
  readonly expected: {
    readonly passed: boolean;
    readonly score: number;
    readonly score_bps: number;
    readonly reason_codes: readonly string[];
    readonly evidence_hash: string;
    readonly spec_hash: string;
    readonly details: readonly ClauseResult[];
  };
};

const FOLDER = join(import.meta.dir, "cases");
const read = (path: string) => JSON.parse(readFileSync(path, "utf8"));

/** The cases of each file, by the file's name. */
export const corpus: readonly (readonly [file: string, cases: readonly Verdict[]])[] = readdirSync(FOLDER)
  .sort()
  .map((file) => [file, read(join(FOLDER, file))]);

type CheckWire = Wire<typeof checkForm>;
type Newer = "evaluator_version" | "signed_by" | "capsule_hash";
/** A check of before there were versions lacks what came with them. */
export type ShownCheck = Omit<CheckWire, Newer> & Partial<Pick<CheckWire, Newer>>;

/** Checks as the API shows them, with their canonical JSON and its hash. */
export const checkHashes: readonly {
  readonly name: string;
  readonly check: ShownCheck;
  readonly canonical: string;
  readonly check_hash: string;
}[] = read(join(import.meta.dir, "check-hashes.json"));
