/**
 * `bun run mutants`: deletes every need of every command, one by one, and checks that the project does not compile then: a
 * need that a command forgets must never read as "there is nothing". The commands are found in the source, and what each
 * needs is read from its type, so none can be left out. A variable that is no longer used does not count as a failure.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Node, SourceFile } from "typescript/unstable/ast";
import {
  isMethodDeclaration,
  isObjectLiteralExpression,
  isPropertyAssignment,
  isShorthandPropertyAssignment,
  isSpreadAssignment,
} from "typescript/unstable/ast/is";
import type { Checker } from "typescript/unstable/async";
import { createCompiler, ROOT } from "./compiler.ts";

const LINE_START = 1;

/** The files whose commands are made from others' needs. Their own (who calls, the request's key) are held by tests. */
const WRAPPERS = new Set([
  "src/services/admin/authority.ts",
  "src/services/audited.ts",
  "src/services/idempotency.ts",
]);

/** One need of one command. */
type Mutant = {
  readonly file: string;
  readonly line: number;
  readonly need: string;
  /** The text of the file without the need. */
  readonly text: string;
};

const compiler = createCompiler();
try {
  process.exitCode = (await run()) ? 0 : 1;
} finally {
  await compiler.close();
}

/** Whether every mutant was found out. */
async function run(): Promise<boolean> {
  const { program, checker } = await compiler.open();
  const mutants: Mutant[] = [];
  for (const name of await program.getSourceFileNames()) {
    const file = name.startsWith(join(ROOT, "src/services/")) ? await program.getSourceFile(name) : undefined;
    if (file) mutants.push(...(await mutantsOf(name, file, checker)));
  }
  const commands = new Set(mutants.map(({ file, line }) => `${file}:${line}`)).size;
  const survivors: Mutant[] = [];
  for (const mutant of mutants) if (!(await isFoundOut(mutant))) survivors.push(mutant);
  for (const { file, line, need } of survivors) {
    console.log(`survived: ${file.slice(ROOT.length + LINE_START)}:${line} does not need ${need}`);
  }
  console.log(`${mutants.length} needs of ${commands} commands were deleted; ${survivors.length} survived`);
  return mutants.length > 0 && survivors.length === 0;
}

/** Whether the file with the need deleted has a type error. */
function isFoundOut({ file, text }: Mutant): Promise<boolean> {
  return compiler.hasTypeError(file, text);
}

async function mutantsOf(name: string, file: SourceFile, checker: Checker): Promise<readonly Mutant[]> {
  const text = readFileSync(name, "utf8");
  const mutants: Mutant[] = [];
  for (const needs of commandNeeds(file)) {
    const line = text.slice(0, needs.getStart(file)).split("\n").length;
    const replaced = (node: Node, by: string): string =>
      text.slice(0, node.getStart(file)) + by + text.slice(node.end);
    for (const { node, need } of namedNeeds(needs)) {
      mutants.push({ file: name, line, need, text: replaced(node, "...{}") });
    }
    for (const expression of gatheredNeeds(needs)) {
      const without = (pattern: string): string =>
        replaced(expression, `(({ ${pattern} }) => rest)(${expression.getText(file)})`);
      // Where the same rewriting finds fault with needs that are whole, it would find fault with anything.
      if (await isFoundOut({ file: name, line, need: "", text: without("...rest") })) {
        if (WRAPPERS.has(name.slice(ROOT.length + LINE_START))) continue;
        throw new Error(
          `${name}:${line}: cannot be judged, since its needs do not compile when they are rewritten`,
        );
      }
      const type = await checker.getTypeAtLocation(expression);
      for (const { name: need } of type ? await checker.getPropertiesOfType(type) : []) {
        mutants.push({ file: name, line, need, text: without(`${need}: _, ...rest`) });
      }
    }
  }
  return mutants;
}

/** The needs that a command names itself. */
function namedNeeds(needs: Node): readonly { readonly node: Node; readonly need: string }[] {
  if (!isObjectLiteralExpression(needs)) return [];
  return needs.properties.flatMap((node) =>
    isPropertyAssignment(node) || isShorthandPropertyAssignment(node)
      ? [{ node, need: node.name.getText() }]
      : [],
  );
}

/** The expressions that give a command several needs at once. */
function gatheredNeeds(needs: Node): readonly Node[] {
  if (!isObjectLiteralExpression(needs)) return [needs];
  return needs.properties.flatMap((node) => (isSpreadAssignment(node) ? [node.expression] : []));
}

/** The expressions of the needs of all commands below a node. */
function commandNeeds(node: Node): readonly Node[] {
  const found: Node[] = [];
  const needs = needsOfCommand(node);
  if (needs) found.push(needs);
  node.forEachChild((child) => void found.push(...commandNeeds(child)));
  return found;
}

/** The expression of a command's needs; null where the node is no command. */
function needsOfCommand(node: Node): Node | null {
  if (!isObjectLiteralExpression(node)) return null;
  const properties = node.properties;
  const decides = properties.some(
    (property) =>
      (isPropertyAssignment(property) ||
        isMethodDeclaration(property) ||
        isShorthandPropertyAssignment(property)) &&
      property.name?.getText() === "decide",
  );
  const needs = properties.find(
    (property) => isPropertyAssignment(property) && property.name.getText() === "needs",
  );
  return decides && needs && isPropertyAssignment(needs) ? needs.initializer : null;
}
