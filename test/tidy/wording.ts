import { linesOf, type SourceFile } from "./source-files.ts";

/** Words that some files may not contain. */
export type WordingRule = {
  readonly where: RegExp;
  readonly except?: string;
  readonly not: RegExp;
  readonly inComments?: true;
  readonly why: string;
};

const PURE = /^src\/(core|resources|services)\//;
const SRC = /^src\//;
const TABLES = /^src\/store\/sqlite\/tables\//;
const CORE_HASHES = /\bBun\.(?!SHA256\b|CryptoHasher\b|hash\.crc32\b)/;
const ENVIRONMENT = /\b(process|Bun|import\.meta)\.env\b/;
/** Only documents that are in the repository may be cited there, so that every reader can open them. */
const CITES = /^(test|src)\//;
const OUTSIDE = /\b(interface|decisions|architecture)\.md\b/;
/** Turns of phrase that a stranger does not understand at first reading. */
const OBSCURE = /\bwhole again\b|\bnot so\b|\b(?<!\bthere )is none\b/i;
const ANY = /\bas any\b(?! \w)|: any\s*([;,)\]}=|&>]|$)|<any>|, any>/;

/** One word for one thing (CONTRIBUTING, "Habits"), in code, comments, messages and pages. These rules name the other words. */
const WORDED = /^(src\/|test\/(?!tidy\/wording)|README\.md)/;
/** A notice tells a person something. What is only called, printed, logged or reported does not. */
const TELLS = /\b(is|are) told (how|of each)\b|\btells? (how (far|many|much)|of each)\b|\btellStatements\b/i;
const IN_GLOSSARY: readonly (readonly [word: RegExp, why: string])[] = [
  [/\bworlds?\b/i, "say mode"],
  // On the wire a rail is called `book`.
  [/(?<!["`,])\bbooks?\b/i, "say ledger, balance or posting"],
  [/(\b|[a-z])[iI]ntents?\b/, "say idempotency"],
  [/\badminActs?\b|\bAdminActs?\b|\badmin acts?\b/, "say audit entry"],
  [/\bknown ?rows\b/i, "say row cache"],
  [/\bmend(s|ed|ing)?\b/i, "say reschedule"],
  [TELLS, "say print, log, narrate or report"],
  [/\b(un)?seal(s|ed|ing)?\b/i, "say encrypt, checksum or signature"],
];

export const WORDING_RULES: readonly WordingRule[] = [
  ...IN_GLOSSARY.map(([not, why]) => ({ where: WORDED, not, inComments: true as const, why })),
  { where: PURE, not: /\bDate\.now\b|\bnew Date\(\s*\)|\bperformance\.now\b/, why: "time is an argument" },
  { where: PURE, not: /\bMath\.random\b|\bgetRandomValues\b/, why: "randomness is an argument" },
  { where: PURE, not: /\brandom(UUID|UUIDv7|Bytes|Int)\(/, why: "randomness is an argument" },
  { where: /^src\/core\//, not: CORE_HASHES, why: "of Bun, core may have the hashes" },
  { where: SRC, except: "src/config.ts", not: ENVIRONMENT, why: "only config.ts reads the environment" },
  { where: SRC, not: OBSCURE, inComments: true, why: "name the rule that was broken, or the thing" },
  { where: SRC, not: ANY, why: "say the type, or unknown" },
  { where: SRC, not: /@ts-(ignore|nocheck)\b/, inComments: true, why: "correct the type instead" },
  { where: SRC, not: /\b(TODO|FIXME|XXX)\b/, inComments: true, why: "do it now, or open an issue" },
  { where: CITES, not: OUTSIDE, inComments: true, why: "cite what the repository has" },
  { where: TABLES, not: /\bIN \('/, why: "make the list of a CHECK from the one in core" },
  { where: SRC, not: /^export default\b|\bas default\b/, why: "named exports only" },
  { where: /^test\//, not: /\b(test|it|describe)\.only\(/, why: "the other tests would not run" },
];

const isComment = (line: string): boolean => /^\s*(\/\/|\/?\*)/.test(line);

/** The lines of a file that break a rule. Comments may say most of what code may not. */
export function wordingProblems(file: SourceFile, rule: WordingRule): string[] {
  if (!rule.where.test(file.path) || file.path === rule.except) return [];
  return linesOf(file).flatMap((line, index) =>
    rule.not.test(line) && (rule.inComments || !isComment(line))
      ? [`${file.path}:${index + 1}: ${rule.why}: ${line.trim()}`]
      : [],
  );
}
