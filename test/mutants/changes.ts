/**
 * `bun run mutants:changes`: deletes everything that a command writes, one by one: each put and each deletion of each Change,
 * and each field of each row that is put. It checks that the project does not compile then, or that a test fails. What is
 * deleted is found by its type, so no command can be left out. A variable that is no longer used does not count as a failure.
 *
 * `bun test/mutants/changes.ts src/services/x402` does the same for the files whose paths begin so.
 */
import { join } from "node:path";
import { type Compiler, createCompiler, ROOT } from "./compiler.ts";
import { nameOf, prepareTests } from "./covering-tests.ts";
import { type Mutant, mutantsOf } from "./deletions.ts";

const SECOND_MS = 1_000;
const within = process.argv.length > 2 ? process.argv.slice(2) : ["src/"];
const begun = performance.now();
/** Whether every mutant was found out. */
async function run({ open, hasTypeError }: Compiler): Promise<boolean> {
  const { mutants, rowFields } = await mutantsOf(await open());
  report(`the types declare ${rowFields} fields at the places that write rows; each is tried`);
  const declared = mutants.filter(({ file }) => within.some((start) => file.startsWith(start)));
  report(`${declared.length} deletions are declared`);
  const compiling: Mutant[] = [];
  const judged = new Set<string>();
  for (const mutant of declared) {
    const { whole } = mutant;
    if (whole !== null && !judged.has(whole)) {
      if (await hasTypeError(join(ROOT, mutant.file), whole))
        throw new Error(`${nameOf(mutant)}: cannot be judged: the file does not compile when rewritten so`);
      judged.add(whole);
    }
    if (!(await hasTypeError(join(ROOT, mutant.file), mutant.text))) compiling.push(mutant);
  }
  let tried = declared.length - compiling.length;
  report(`${tried} do not compile; the tests judge the other ${compiling.length}`);
  const survivors: Mutant[] = [];
  const tests = await prepareTests(report);
  try {
    for (const mutant of compiling) {
      const failure =
        (await tests.failureOf(mutant)) ??
        // What a function answers may be written in another file.
        ((await hasTypeError(join(ROOT, mutant.file), mutant.text, true)) ? "it does not compile" : null);
      tried++;
      if (failure === null) survivors.push(mutant);
      report(`${tried}/${declared.length} ${nameOf(mutant)}: ${failure ?? "survived"}`);
    }
  } finally {
    tests.close();
  }
  for (const mutant of survivors) {
    const covering = tests.covering(mutant).length;
    console.log(`survived: ${nameOf(mutant)}, which ${covering} test files run through`);
  }
  report(`deletions: ${declared.length} declared, ${tried} tried, ${survivors.length} survived`);
  return declared.length > 0 && tried === declared.length && survivors.length === 0;
}

function report(progress: string): void {
  const elapsed = Math.round((performance.now() - begun) / SECOND_MS);
  console.log(`${elapsed} s: ${progress}`);
}

const compiler = createCompiler();
try {
  process.exitCode = (await run(compiler)) ? 0 : 1;
} finally {
  await compiler.close();
}
