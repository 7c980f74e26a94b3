/**
 * `bun run mutants:verdicts`: breaks the rules of every kind of clause, one by one, in the service and in `replay.py`, and checks
 * that a case of the corpus fails then. A break is a small change of a program's text, in a copy of the repository.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { CLAUSE_KINDS, type ClauseKind } from "../../src/core/clauses/registry.ts";
import { copyRepository } from "./covering-tests.ts";

/** A text that is in the file once, and what is written in its place. */
type Break = readonly [from: string, to: string];
type Breaks = Readonly<Record<ClauseKind, readonly Break[]>>;

const OURS: Breaks = {
  "http.status": [
    ["if (status === wanted) return", "if (status !== wanted) return"],
    ["status === 404 || status === 410", "status === 404"],
    ["status === 404 || status === 410", "status === 410"],
  ],
  "file.sha256": [
    ["digest === clause.digest.toLowerCase()", "digest === clause.digest"],
    ['digest === clause.digest.toLowerCase() ? null : "digest_mismatch"', "null"],
  ],
  "data.freshness": [
    ["ageMs <= ageMaxSeconds * SECOND_MS", "ageMs < ageMaxSeconds * SECOND_MS"],
    ["ageMs <= ageMaxSeconds * SECOND_MS", "ageMs <= ageMaxSeconds * SECOND_MS + 1"],
    ["ageMs >= -FUTURE_MAX_MS", "ageMs > -FUTURE_MAX_MS"],
    ["ageMs >= -FUTURE_MAX_MS", "ageMs >= -FUTURE_MAX_MS - 1"],
    ["evidence.generatedAt ?? statedTimeOf(evidence.body)", "statedTimeOf(evidence.body)"],
    ["statedAt === undefined ? evidence.lastModifiedAt : statedAt", "statedAt ?? evidence.lastModifiedAt"],
    ['return found("no_timestamp")', "return found(null)"],
  ],
  "json.schema": [
    ['return found("schema_not_found")', 'return found("schema_mismatch")'],
    ['(document.value) ? null : "schema_mismatch"', '(document.value) ? "schema_mismatch" : null'],
    [
      'if (document === null) return found("body_not_json");\n  return found(jsonSchemas()',
      'if (document === null) return found("schema_mismatch");\n  return found(jsonSchemas()',
    ],
  ],
  "json.jsonpath": [
    ['return found("path_unsupported")', 'return found("path_not_found")'],
    ['first.done ? found("path_not_found")', "first.done ? found(null)"],
    [
      'if (values.length === 2) return found("value_mismatch", observedOf(values));',
      "if (values.length === 2) break;",
    ],
    [
      'if (values.length === 0) return found("path_not_found");',
      'if (values.length === 0) return found("value_mismatch");',
    ],
    ["jsonEquals(values[0], wanted) ? null", "jsonEquals(wanted, wanted) ? null"],
    [
      'if (document === null) return found("body_not_json");\n  return Object',
      'if (document === null) return found("path_not_found");\n  return Object',
    ],
  ],
  "uptime.window": [
    ["reaches(evidence.uptimeRatio, clause.minRatio", "reaches(evidence.uptimeRatio, 0"],
    ['"no_uptime_data", "uptime_below_minimum"', '"uptime_below_minimum", "no_uptime_data"'],
    ["found(value >= minimum ? null", "found(value > minimum ? null"],
  ],
  "chain.event": [
    ['return found("no_event_log")', 'return found("event_not_emitted")'],
    ["topics.includes(topic)", "topics[0] === topic"],
    ["topics.includes(topic)", "topics.some((one) => one.includes(topic))"],
  ],
  "llm.judge": [
    ["reaches(evidence.judgeScore, clause.minScore", "reaches(evidence.judgeScore, 0"],
    ['"no_judgement", "score_below_minimum"', '"score_below_minimum", "no_judgement"'],
  ],
};

const THEIRS: Breaks = {
  "http.status": [
    ['status == clause["equals"]:', 'status != clause["equals"]:'],
    ["status in (404, 410)", "status == 404"],
    ["status in (404, 410)", "status == 410"],
  ],
  "file.sha256": [
    ['digest == clause["digest"].lower()', 'digest == clause["digest"]'],
    ['(None if digest == clause["digest"].lower() else "digest_mismatch")', "None"],
  ],
  "data.freshness": [
    ['age > clause["maxAgeSeconds"] * 1000', 'age >= clause["maxAgeSeconds"] * 1000'],
    ['age > clause["maxAgeSeconds"] * 1000', 'age > clause["maxAgeSeconds"] * 1000 + 1'],
    ["age < -300_000", "age <= -300_000"],
    ["age < -300_000", "age < -300_001"],
    ['if "generated_at" in evidence:', "if False:"],
    [
      'return parse_time(document["generated_at"])',
      'return parse_time(document["generated_at"]) or parse_http_date(evidence.get("last_modified"))',
    ],
    ['return "no_timestamp", None', "return None, None"],
  ],
  "json.schema": [
    ['return "schema_not_found", None', 'return "schema_mismatch", None'],
    ["return (None if Schema(", "return (None if not Schema("],
    [
      'return "body_not_json", None\n    return (None if Schema(',
      'return "schema_mismatch", None\n    return (None if Schema(',
    ],
  ],
  "json.jsonpath": [
    ['return "path_unsupported", None', 'return "path_not_found", None'],
    ['if not found:\n        return "path_not_found", None', "if not found:\n        return None, None"],
    ['(2 if "equals" in clause else 1)', "1"],
    ['(None if equal(found[0], clause["equals"]) else "value_mismatch")', "None"],
    ['return "body_not_json", None\n    found = []', 'return "path_not_found", None\n    found = []'],
  ],
  "uptime.window": [
    [
      'reaches("uptime_ratio", "minRatio", "no_uptime_data", "uptime_below_minimum")',
      'reaches("uptime_ratio", "minRatio", "uptime_below_minimum", "no_uptime_data")',
    ],
    ["value >= clause[minimum]", "value > clause[minimum]"],
    ["value >= clause[minimum]", "value >= 0"],
  ],
  "chain.event": [
    ['return "no_event_log", None', 'return "event_not_emitted", None'],
    ['clause["topic"] in topics', 'clause["topic"] in topics[:1]'],
    ['clause["topic"] in topics', 'any(clause["topic"] in one for one in topics)'],
  ],
  "llm.judge": [
    [
      'reaches("judge_score", "minScore", "no_judgement", "score_below_minimum")',
      'reaches("judge_score", "minScore", "score_below_minimum", "no_judgement")',
    ],
    ['reaches("judge_score", "minScore"', 'reaches("uptime_ratio", "minScore"'],
  ],
};

/** A program with its breaks, and how it is run over the corpus. */
type Program = {
  readonly file: string;
  readonly breaks: Breaks;
  readonly command: readonly string[];
  /** How many cases it said that fail; null where it did not come to its end, which finds nothing out. */
  failedIn(output: string): number | null;
};

const countIn = (output: string, pattern: RegExp): number | null => {
  const [, count] = pattern.exec(output) ?? [];
  return count === undefined ? null : Number(count);
};

const PROGRAMS: readonly Program[] = [
  {
    file: "src/core/clauses/evaluate.ts",
    breaks: OURS,
    // The bench says the same again, and needs a server.
    command: [process.execPath, "test", "-t", "^(?!at the bench)", "test/verdicts/verdicts.test.ts"],
    // A program that cannot be loaded passes no case.
    failedIn: (output) => (countIn(output, /^ *(\d+) pass$/m) ? countIn(output, /^ *(\d+) fail$/m) : null),
  },
  {
    file: "test/verdicts/replay.py",
    breaks: THEIRS,
    command: ["python3", "test/verdicts/replay.py"],
    failedIn: (output) => countIn(output, /^verdicts: .* (\d+) differ$/m),
  },
];

/** Runs a program over the corpus. */
function runIn(folder: string, { command, failedIn }: Program): number | null {
  const { stdout, stderr } = Bun.spawnSync([...command], { cwd: folder, env: process.env });
  return failedIn(`${stdout}\n${stderr}`);
}

/** Whether each break of a program is found out. */
function isKept(folder: string, program: Program, report: (line: string) => void): boolean {
  const path = join(folder, program.file);
  const whole = readFileSync(path, "utf8");
  if (runIn(folder, program) !== 0)
    throw new Error(`${program.file} fails a case although nothing is broken`);
  let survived = 0;
  for (const kind of CLAUSE_KINDS)
    for (const [from, to] of program.breaks[kind]) {
      if (whole.split(from).length !== 2) throw new Error(`${program.file} does not have this once: ${from}`);
      writeFileSync(
        path,
        whole.replace(from, () => to),
      );
      const failed = runIn(folder, program);
      if (!failed) survived++;
      const found =
        failed === null
          ? "survived: it did not come to its end"
          : failed === 0
            ? "survived"
            : `${failed} cases fail`;
      report(
        `${program.file}: ${kind}: ${from.replaceAll(/\s+/g, " ")} → ${to.replaceAll(/\s+/g, " ")}: ${found}`,
      );
    }
  writeFileSync(path, whole);
  const lists = CLAUSE_KINDS.map((kind) => program.breaks[kind].length);
  const tried = lists.filter((count) => count > 0).length;
  report(
    `${program.file}: ${lists.reduce((sum, count) => sum + count)} breaks of ${tried} kinds out of ${CLAUSE_KINDS.length}, ${survived} survived`,
  );
  return survived === 0 && tried === CLAUSE_KINDS.length;
}

const folder = mkdtempSync(join(tmpdir(), "holdfast-verdicts-"));
try {
  copyRepository(folder);
  const kept = PROGRAMS.map((program) => isKept(folder, program, console.log));
  process.exitCode = kept.every((one) => one) ? 0 : 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}
