/**
 * `bun run mutants:needs`: deletes every need of every command, one by one, and checks that the project does not compile then:
 * a need that a command forgets must never read as "there is nothing". The commands are found in the source, and what each
 * needs is read from its type: every need that is declared so must be tried. A variable that is no longer used does not count
 * as a failure.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Node, SourceFile } from "typescript/unstable/ast";
import {
  isAsExpression,
  isObjectLiteralExpression,
  isParenthesizedExpression,
  isPropertyAssignment,
  isSatisfiesExpression,
  isShorthandPropertyAssignment,
  isSpreadAssignment,
} from "typescript/unstable/ast/is";
import type { Checker, Type } from "typescript/unstable/async";
import { createCompiler, ROOT } from "./compiler.ts";

/** One need of one command. */
type Mutant = {
  readonly need: string;
  /** The text of the file without the need. */
  readonly text: string;
};

/** A command, with what its type declares that it needs. */
type Command = {
  readonly file: string;
  readonly line: number;
  readonly declared: readonly string[];
  readonly mutants: readonly Mutant[];
};

/** What makes an object with needs a command, or the part of one that is handed to another: it decides, or refuses. */
const DECIDES = ["decide", "refuseMissing"];

const compiler = createCompiler();
try {
  process.exitCode = (await run()) ? 0 : 1;
} finally {
  await compiler.close();
}

/** Whether every need that is declared was tried, and found out. */
async function run(): Promise<boolean> {
  const { program, checker } = await compiler.open();
  const commands: Command[] = [];
  for (const name of await program.getSourceFileNames()) {
    const isOutsideStore = name.startsWith(join(ROOT, "src/")) && !name.startsWith(join(ROOT, "src/store/"));
    const file = isOutsideStore ? await program.getSourceFile(name) : undefined;
    if (file) commands.push(...(await commandsOf(name, file, checker)));
  }
  const problems: string[] = [];
  let declaredCount = 0;
  let triedCount = 0;
  for (const { file, line, declared, mutants } of commands) {
    const report = (problem: string): void =>
      void problems.push(`${file.slice(ROOT.length + "/".length)}:${line}: ${problem}`);
    const tried = new Set(mutants.map(({ need }) => need));
    declaredCount += declared.length;
    triedCount += tried.size;
    for (const need of declared) if (!tried.has(need)) report(`${need} is declared, and was not tried`);
    for (const need of tried) if (!declared.includes(need)) report(`${need} was tried, and is not declared`);
    for (const { need, text } of mutants) {
      if (!(await compiler.hasTypeError(file, text))) report(`${need} survived: without it this compiles`);
    }
  }
  for (const problem of problems) console.log(problem);
  console.log(
    `needs of ${commands.length} commands: ${declaredCount} declared, ${triedCount} tried, ${problems.length} problems`,
  );
  return commands.length > 0 && problems.length === 0;
}

async function commandsOf(name: string, file: SourceFile, checker: Checker): Promise<readonly Command[]> {
  const text = readFileSync(name, "utf8");
  const commands: Command[] = [];
  for (const needs of commandNeeds(file)) {
    const line = text.slice(0, needs.getStart(file)).split("\n").length;
    const replaced = (node: Node, by: string): string =>
      text.slice(0, node.getStart(file)) + by + text.slice(node.end);
    const mutants: Mutant[] = namedNeeds(needs).map(({ node, need }) => ({
      need,
      text: replaced(node, "...{}"),
    }));
    for (const expression of gatheredNeeds(needs)) {
      const without = (pattern: string): string =>
        replaced(expression, `(({ ${pattern} }) => rest)(${expression.getText(file)})`);
      const gathered = await needsOfType(checker, expression);
      // Where the same rewriting finds fault with needs that are whole, it would find fault with anything.
      if (gathered.length > 0 && (await compiler.hasTypeError(name, without("...rest"))))
        throw new Error(`${name}:${line}: the needs cannot be judged: they do not compile when rewritten`);
      mutants.push(...gathered.map((need) => ({ need, text: without(`${need}: _, ...rest`) })));
    }
    commands.push({ file: name, line, declared: await needsOfType(checker, needs), mutants });
  }
  return commands;
}

/** The names of the needs that the type of an expression has. */
async function needsOfType(checker: Checker, expression: Node): Promise<readonly string[]> {
  const type = await checker.getTypeAtLocation(expression);
  if (!type) throw new Error(`${expression.getText()} has no type`);
  return [...new Set(await ownNames(checker, type))];
}

/** What is generic belongs to the commands that are handed to this one, and is tried there. */
async function ownNames(checker: Checker, type: Type): Promise<readonly string[]> {
  if (await isGeneric(type)) return [];
  if (!type.isIntersectionType()) return (await checker.getPropertiesOfType(type)).map(({ name }) => name);
  const names = await Promise.all((await type.getTypes()).map((part) => ownNames(checker, part)));
  return names.flat();
}

/** Whether it is a type parameter, or made from one as an alias: `Complete<N>`. */
async function isGeneric(type: Type): Promise<boolean> {
  if (type.isTypeParameter()) return true;
  for (const argument of await type.getAliasTypeArguments()) if (await isGeneric(argument)) return true;
  return false;
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

/** The expressions of the needs of all commands below a node, without the casts around them. */
function commandNeeds(node: Node): readonly Node[] {
  const found: Node[] = [];
  const needs = needsOfCommand(node);
  if (needs) found.push(withoutCasts(needs));
  node.forEachChild((child) => void found.push(...commandNeeds(child)));
  return found;
}

/** The expression of a command's needs; null where the node is no command. */
function needsOfCommand(node: Node): Node | null {
  if (!isObjectLiteralExpression(node)) return null;
  const propertyNamed = (name: string) =>
    node.properties.find((property) => !isSpreadAssignment(property) && property.name?.getText() === name);
  const needs = propertyNamed("needs");
  if (!DECIDES.some(propertyNamed) || !needs || isSpreadAssignment(needs)) return null;
  return isPropertyAssignment(needs) ? needs.initializer : (needs.name ?? null);
}

/** A cast would let anything compile, or nothing. */
function withoutCasts(node: Node): Node {
  return isAsExpression(node) || isSatisfiesExpression(node) || isParenthesizedExpression(node)
    ? withoutCasts(node.expression)
    : node;
}
