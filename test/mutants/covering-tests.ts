import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { ROOT } from "./compiler.ts";
import type { Mutant } from "./deletions.ts";

/**
 * What `bun test` runs, but for the tests of style, for random histories, which may not find again what they found, and for
 * one that measures time.
 */
const TESTS = new Bun.Glob("test/**/*.test.ts");
const LEFT_OUT = /^test\/(tidy|simulation|x402|process|faults|mutants|http\/hostile)\b/;

/** What a test file covers is measured once for each state of the source, and kept here. */
const MEASURED = join(ROOT, "node_modules/.cache/mutants");
/** Which test found a deletion out in an earlier run: it is asked first. */
const FINDERS = join(MEASURED, "finders.json");

/** A run of tests may take this long, besides five times as long as it took without a deletion. */
const TIMEOUT_MS = 30_000;
const SLOWER_AT_MOST = 5;
/** How many test files are first run together; each further run has three times as many. */
const FIRST_RUN = 1;
const MORE_EACH_RUN = 3;
/** A test that fails sooner does not fail because the machine is busy. */
const SLOW_MS = 2_000;
/** One test may take as long as this: other programs may run beside it. */
const TEST_TIMEOUT_MS = 20_000;

/** What one test file runs through. */
type Measured = {
  readonly test: string;
  readonly durationMs: number;
  /** The lines of each file of src that it runs through, and those that it could. */
  readonly lines: Readonly<
    Record<string, { readonly run: readonly number[]; readonly known: readonly number[] }>
  >;
};

/** The tests, in a copy of the repository in which files may be changed. */
export type Tests = {
  /** The test files that run through what is deleted. */
  covering(mutant: Mutant): readonly string[];
  /** How the tests that run through it failed with the deletion; null where they all pass. */
  failureOf(mutant: Mutant): Promise<string | null>;
  close(): void;
};

/** A test that fails although nothing is deleted judges nothing, such as one that measures time on a busy machine. */
export async function prepareTests(report: (progress: string) => void): Promise<Tests> {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-mutants-"));
  copyRepository(folder);
  const close = () => rmSync(folder, { recursive: true, force: true });
  try {
    const measured = new Map<string, Measured>();
    const files = [...TESTS.scanSync(ROOT)].filter((path) => !LEFT_OUT.test(path)).sort();
    const state = stateOfSource();
    for (const [index, test] of files.entries()) {
      report(`measuring ${index + 1} of ${files.length}: ${test}`);
      const found = await measure(folder, test, state);
      if (typeof found === "string") report(`left out, since it fails although nothing is deleted: ${found}`);
      else measured.set(test, found);
    }
    const finders = Bun.file(FINDERS);
    const found = (await finders.exists()) ? Object.entries((await finders.json()) as object) : [];
    return { ...testsOf(folder, measured, new Map(found)), close };
  } catch (error) {
    close();
    throw error;
  }
}

/** Its files, with the same packages. */
export function copyRepository(folder: string): void {
  const { stdout } = Bun.spawnSync(["git", "ls-files", "-z", "-co", "--exclude-standard"], { cwd: ROOT });
  for (const path of stdout.toString().split("\0")) {
    if (path === "" || !existsHere(path)) continue;
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    cpSync(join(ROOT, path), join(folder, path));
  }
  symlinkSync(join(ROOT, "node_modules"), join(folder, "node_modules"));
}

/** Git also lists a file that was deleted and not committed. */
const existsHere = (path: string): boolean => Bun.file(join(ROOT, path)).size > 0;

/** Changes with every file that a test may run through. */
function stateOfSource(): string {
  const hash = new Bun.CryptoHasher("sha256");
  const read = [...new Bun.Glob("{src,test,migrations}/**/*").scanSync(ROOT), "bun.lock", "bunfig.toml"];
  for (const path of read.sort()) {
    if (!TESTS.match(path) && !LEFT_OUT.test(path))
      hash.update(`${path}\n`).update(readFileSync(join(ROOT, path)));
  }
  return hash.digest("hex");
}

async function measure(folder: string, test: string, state: string): Promise<Measured | string> {
  const content = readFileSync(join(ROOT, test));
  const key = new Bun.CryptoHasher("sha256").update(`${state} ${test}\n`).update(content).digest("hex");
  const kept = Bun.file(join(MEASURED, `${key}.json`));
  if (await kept.exists()) return (await kept.json()) as Measured;
  const coverage = join(folder, "coverage");
  const options = ["--coverage", "--coverage-reporter=lcov", `--coverage-dir=${coverage}`];
  const begun = performance.now();
  const failure = await run(folder, [...options, `./${test}`], 10 * TIMEOUT_MS);
  if (failure !== null) return failure;
  const measured: Measured = {
    test,
    durationMs: performance.now() - begun,
    lines: linesOf(readFileSync(join(coverage, "lcov.info"), "utf8")),
  };
  await Bun.write(kept, JSON.stringify(measured));
  return measured;
}

/** The lines of src in a report of lcov: `SF:` names a file, `DA:12,3` says that its line 12 was run three times. */
function linesOf(report: string): Measured["lines"] {
  const lines: Record<string, { run: number[]; known: number[] }> = {};
  let ofFile: { run: number[]; known: number[] } | null = null;
  for (const line of report.split("\n")) {
    const file = /^SF:(src\/.*)$/.exec(line)?.[1];
    if (file !== undefined) {
      ofFile = { run: [], known: [] };
      lines[file] = ofFile;
    } else if (line.startsWith("SF:")) ofFile = null;
    const [, number, times] = /^DA:(\d+),(\d+)$/.exec(line) ?? [];
    if (!ofFile || number === undefined) continue;
    ofFile.known.push(Number(number));
    if (times !== "0") ofFile.run.push(Number(number));
  }
  return lines;
}

function testsOf(
  folder: string,
  measured: ReadonlyMap<string, Measured>,
  finders: Map<string, string>,
): Omit<Tests, "close"> {
  /** How many mutants of a file a test has found out: it is likely to find out the next one too. */
  const finds = new Map<string, number>();
  const all = [...measured.values()];
  const timeoutOf = (tests: readonly string[]): number =>
    TIMEOUT_MS + SLOWER_AT_MOST * tests.reduce((sum, test) => sum + (measured.get(test)?.durationMs ?? 0), 0);

  function covering(mutant: Mutant): readonly string[] {
    const { file, around } = mutant;
    const finder = finders.get(nameOf(mutant));
    for (const [from, to] of around) {
      const isIn = (line: number): boolean => line >= from && line <= to;
      // Not every line is counted, and where none is, those around it show it.
      if (!all.some(({ lines }) => lines[file]?.known.some(isIn))) continue;
      const through = all.filter(({ lines }) => lines[file]?.run.some(isIn));
      const rank = ({ test, durationMs }: Measured): readonly number[] => [
        test === finder ? 1 : 0,
        finds.get(`${file} ${test}`) ?? 0,
        wordsInCommon(file, test),
        -durationMs,
      ];
      return through.sort((one, other) => compare(rank(other), rank(one))).map(({ test }) => test);
    }
    return [];
  }

  /** Whether the test fails with the deletion, and passes without it: a busy machine can make a test fail. */
  async function isFoundOutBy(test: string, { file, text }: Mutant): Promise<boolean> {
    const fails = async (): Promise<boolean> =>
      (await run(folder, ["--bail", `./${test}`], timeoutOf([test]))) !== null;
    cpSync(join(ROOT, file), join(folder, file));
    const failsWithout = await fails();
    writeFileSync(join(folder, file), text);
    return !failsWithout && (await fails());
  }

  return {
    covering,
    async failureOf(mutant) {
      const { file, text } = mutant;
      const left = [...covering(mutant)];
      writeFileSync(join(folder, file), text);
      try {
        for (let count = FIRST_RUN; left.length > 0; count *= MORE_EACH_RUN) {
          const chosen = left.splice(0, count);
          const paths = chosen.map((test) => `./${test}`);
          const failure = await run(folder, ["--bail", ...paths], timeoutOf(chosen));
          if (failure === null) continue;
          const finder = chosen.find((test) => failure.startsWith(test)) ?? chosen[0] ?? "";
          if (mayBeSlow(failure) && !(await isFoundOutBy(finder, mutant))) {
            left.push(...chosen.filter((test) => test !== finder));
            continue;
          }
          finds.set(`${file} ${finder}`, (finds.get(`${file} ${finder}`) ?? 0) + 1);
          finders.set(nameOf(mutant), finder);
          await Bun.write(FINDERS, JSON.stringify(Object.fromEntries(finders)));
          return failure;
        }
        return null;
      } finally {
        cpSync(join(ROOT, file), join(folder, file));
      }
    },
  };
}

/** Whether a test may have failed because the machine was busy: it took long, or what it prints does not say how long. */
function mayBeSlow(failure: string): boolean {
  const ms = /\[([\d.]+)ms\]$/.exec(failure)?.[1];
  return ms === undefined || Number(ms) > SLOW_MS;
}

/** The same in the next run, where nothing before it in the file has changed. */
export const nameOf = ({ file, around: [lines], deleted }: Mutant): string =>
  `${file}:${lines?.[0]} without ${deleted}`;

function compare(one: readonly number[], other: readonly number[]): number {
  for (const [index, value] of one.entries()) {
    const difference = value - (other[index] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}

/** How many words of the two paths are the same, but for an ending, such as `purchases` and `purchase`. The name counts most. */
function wordsInCommon(file: string, test: string): number {
  const wordsOf = (path: string): readonly string[] => path.split(/[/.-]/).slice(1, -1);
  const ofTest = wordsOf(test);
  const ofName = wordsOf(`/${basename(file)}`);
  return wordsOf(file)
    .filter((word) =>
      ofTest.some((other) => other.startsWith(word.slice(0, 5)) || word.startsWith(other.slice(0, 5))),
    )
    .reduce((sum, word) => sum + (ofName.includes(word) ? 3 : 1), 0);
}

/** Runs tests. Null where they pass; else the file and the name of the first that failed. */
async function run(folder: string, args: readonly string[], timeoutMs: number): Promise<string | null> {
  const child = Bun.spawn(
    [process.execPath, "test", "--no-orphans", `--timeout=${TEST_TIMEOUT_MS}`, ...args],
    {
      cwd: folder,
      env: { ...process.env, NO_COLOR: "1", CI: "true" },
      stdio: ["ignore", "pipe", "pipe"],
      timeout: Math.ceil(timeoutMs),
      killSignal: "SIGKILL",
    },
  );
  const [printed, code] = await Promise.all([new Response(child.stderr).text(), child.exited]);
  if (code === 0) return null;
  if (child.signalCode === "SIGKILL") return `${args.at(-1)}: not over after ${Math.round(timeoutMs)} ms`;
  const lines = printed.split("\n");
  const failed = lines.findIndex((line) => line.startsWith("(fail)"));
  const file = lines.slice(0, failed + 1).findLast((line) => /^test\/.*\.test\.ts:$/.test(line));
  return `${file ?? args.at(-1)} ${lines[failed]?.replace(/^\(fail\) /, "") ?? printed.slice(-500)}`;
}
