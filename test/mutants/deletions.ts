import { readFileSync } from "node:fs";
import { join } from "node:path";
import type {
  ArrayLiteralExpression,
  CallExpression,
  Node,
  ObjectLiteralExpression,
  SourceFile,
} from "typescript/unstable/ast";
import {
  isArrayLiteralExpression,
  isCallExpression,
  isConditionalExpression,
  isObjectLiteralExpression,
  isPropertyAccessExpression,
  isPropertyAssignment,
  isSpreadAssignment,
  isTypeAliasDeclaration,
} from "typescript/unstable/ast/is";
import {
  type Checker,
  type Project,
  SymbolFlags,
  type Type,
  type TypeReference,
} from "typescript/unstable/async";
import { ROOT } from "./compiler.ts";

/** The source with one thing less that a command writes. */
export type Mutant = {
  /** From the top of the repository. */
  readonly file: string;
  /** The lines of what is deleted, and of everything around it up to the file: the nearest ones first. Both ends count. */
  readonly around: readonly (readonly [number, number])[];
  /** The first line of what is deleted, as text. */
  readonly deleted: string;
  /** The text of the file without it. */
  readonly text: string;
};

/** Types from which the functions that all commands share make rows. What is optional in them, a command can forget. */
const PARTS = [
  ["src/core/warrant.ts", "Move"],
  ["src/services/transition.ts", "Details"],
  ["src/services/transition.ts", "MoveDetails"],
  ["src/services/audited.ts", "Entry"],
] as const;

/** A type with the names of the fields that it must have. */
type Shape = { readonly type: Type; readonly fields: readonly string[] };

/** The types of what a command writes. */
type Seam = {
  readonly change: Shape;
  /** What stands in lists: puts, deletions, and entries of the audit log. */
  readonly listed: readonly Shape[];
  /** Of these, every property counts: puts, deletions, Changes, and what rows are made from. */
  readonly whole: readonly Shape[];
  /** By their kinds. */
  readonly rows: ReadonlyMap<string, Shape>;
};

/** What is put in the place of an element of a list, of a property of an object, of a whole list, of a Change. */
const NO_ELEMENT = "...[]";
const NO_PROPERTY = "...{}";
const NO_LIST = "[]";
const NO_CHANGE = "{ put: [] }";

/**
 * Every mutant of the files: without one element of a Change, without one field of a row, a put or a deletion. The files are
 * those of src, but for the engine.
 *
 * @throws where no mutant is of a row that the types declare
 */
export async function mutantsOf({ program, checker }: Project): Promise<readonly Mutant[]> {
  const seam = await readSeam(checker, async (path) => {
    const file = await program.getSourceFile(join(ROOT, path));
    if (!file) throw new Error(`${path} is not there`);
    return file;
  });
  const mutants: Mutant[] = [];
  const kinds = new Set<string>();
  for (const name of await program.getSourceFileNames()) {
    const path = name.slice(ROOT.length + "/".length);
    if (!name.startsWith(join(ROOT, "src/")) || path.startsWith("src/store/")) continue;
    const file = await program.getSourceFile(name);
    if (!file) throw new Error(`${name} is not there`);
    const finder = new Finder(checker, seam, kinds);
    await finder.visit(file);
    mutants.push(...[...finder.found].map(([node, by]) => mutantOf(path, file, node, by)));
  }
  const missing = [...seam.rows.keys()].filter((kind) => !kinds.has(kind));
  if (missing.length > 0) throw new Error(`no command writes a row of the kind ${missing.join(", ")}`);
  return mutants;
}

function mutantOf(path: string, file: SourceFile, node: Node, by: string): Mutant {
  const text = readFileSync(join(ROOT, path), "utf8");
  const start = node.getStart(file);
  const lineAt = (index: number): number => text.slice(0, index).split("\n").length;
  const around: (readonly [number, number])[] = [];
  for (let outer = node; outer.parent; outer = outer.parent) {
    around.push([lineAt(outer.getStart(file)), lineAt(outer.end)]);
  }
  return {
    file: path,
    around,
    deleted: text.slice(start, node.end).split("\n")[0] ?? "",
    text: text.slice(0, start) + by + text.slice(node.end),
  };
}

async function readSeam(checker: Checker, open: (path: string) => Promise<SourceFile>): Promise<Seam> {
  const shapeOf = async (type: Type): Promise<Shape> => {
    const properties = await checker.getPropertiesOfType(type);
    const required = properties.filter(({ flags }) => (flags & SymbolFlags.Optional) === 0);
    return { type, fields: required.map(({ name }) => name) };
  };
  const read = async (path: string, alias: string): Promise<Shape> =>
    shapeOf(await aliasOf(checker, await open(path), alias));
  const rows = new Map<string, Shape>();
  const { type: allRows } = await read("src/store/rows.ts", "Rows");
  for (const property of await checker.getPropertiesOfType(allRows)) {
    const type = await checker.getTypeOfSymbol(property);
    if (!type) throw new Error(`the row ${property.name} has no type`);
    rows.set(property.name, await shapeOf(type));
  }
  const put = await read("src/store/change.ts", "Put");
  const deletion = await read("src/store/change.ts", "Deletion");
  const change = await read("src/store/change.ts", "Change");
  const parts = await Promise.all(PARTS.map(([path, alias]) => read(path, alias)));
  const entry = await read("src/services/audited.ts", "Entry");
  return {
    change,
    listed: [put, deletion, entry],
    whole: [put, deletion, change, ...parts],
    rows,
  };
}

async function aliasOf(checker: Checker, file: SourceFile, name: string): Promise<Type> {
  for (const statement of file.statements) {
    if (!isTypeAliasDeclaration(statement) || statement.name.text !== name) continue;
    const symbol = await checker.getSymbolAtLocation(statement.name);
    if (symbol) return checker.getDeclaredTypeOfSymbol(symbol);
  }
  throw new Error(`${file.fileName} declares no type ${name}`);
}

/** Walks through a file, and finds what of it is written. */
class Finder {
  /** What is put in the place of each node that is deleted. */
  readonly found = new Map<Node, string>();

  constructor(
    private readonly checker: Checker,
    private readonly seam: Seam,
    /** The kinds of the rows that were found. */
    private readonly kinds: Set<string>,
  ) {}

  async visit(node: Node): Promise<void> {
    if (isArrayLiteralExpression(node)) await this.visitList(node);
    if (isObjectLiteralExpression(node)) await this.visitObject(node);
    if (isCallExpression(node)) await this.visitCall(node);
    const children: Node[] = [];
    node.forEachChild((child) => void children.push(child));
    for (const child of children) await this.visit(child);
  }

  /** Each element of a list of puts or deletions. */
  private async visitList(list: ArrayLiteralExpression): Promise<void> {
    if (list.elements.length === 0 || !(await this.isWritten(list))) return;
    for (const node of list.elements) this.found.set(node, NO_ELEMENT);
  }

  /** Each argument of `puts.push(…)`, and each list and each Change that a function is given. */
  private async visitCall({ expression, arguments: given }: CallExpression): Promise<void> {
    const pushes = isPropertyAccessExpression(expression) && expression.name.text === "push";
    if (pushes && (await this.isWritten(expression.expression))) {
      for (const node of given) this.found.set(node, NO_ELEMENT);
    }
    for (const node of given) {
      if (isLiteral(node)) continue;
      if (await this.isWritten(node)) this.found.set(node, NO_LIST);
      else if (await this.isChange(node)) this.found.set(node, NO_CHANGE);
    }
  }

  private async visitObject(object: ObjectLiteralExpression): Promise<void> {
    const type = await this.checker.getTypeAtLocation(object);
    if (!type) return;
    if (await this.isWhole(type)) for (const node of fieldsOf(object)) this.found.set(node, NO_PROPERTY);
    for (const node of object.properties) {
      if (isSpreadAssignment(node) || !node.name) continue;
      const value = isPropertyAssignment(node) ? node.initializer : node.name;
      // The elements of a list that stands here are deleted one by one; a Change that stands here likewise.
      if (isLiteral(value)) continue;
      const name = node.name.getText();
      if (await this.isWritten(value)) this.found.set(node, `${name}: []`);
      else if (name === "change" && (await this.isChange(value))) this.found.set(node, NO_PROPERTY);
    }
  }

  /** Whether every property of it counts. */
  private async isWhole(type: Type): Promise<boolean> {
    const names = new Set((await this.checker.getPropertiesOfType(type)).map(({ name }) => name));
    const isA = async (shape: Shape): Promise<boolean> =>
      shape.fields.every((field) => names.has(field)) &&
      (await this.checker.isTypeAssignableTo(type, shape.type));
    for (const [kind, row] of this.seam.rows) {
      if (!(await isA(row))) continue;
      this.kinds.add(kind);
      return true;
    }
    for (const shape of this.seam.whole) if (await isA(shape)) return true;
    return false;
  }

  /** Whether it is a list of what is written. */
  private async isWritten(node: Node): Promise<boolean> {
    const type = await this.checker.getTypeAtLocation(node);
    const list = type && (await this.checker.getNonNullableType(type));
    if (!list) return false;
    const isList = (await this.checker.isArrayType(list)) || (await this.checker.isTupleType(list));
    if (!isList) return false;
    const [element] = await this.checker.getTypeArguments(list as TypeReference);
    const names = element ? (await this.checker.getPropertiesOfType(element)).map(({ name }) => name) : [];
    if (!element || names.length === 0) return false;
    for (const { type, fields } of this.seam.listed) {
      // A resource may have all that an entry has, and more.
      if (!names.every((name) => name === "before" || fields.includes(name))) continue;
      if (await this.checker.isTypeAssignableTo(element, type)) return true;
    }
    return false;
  }

  private async isChange(node: Node): Promise<boolean> {
    const type = await this.checker.getTypeAtLocation(node);
    const change = type && (await this.checker.getNonNullableType(type));
    if (!change || !(await this.checker.getPropertyOfType(change, "put"))) return false;
    return this.checker.isTypeAssignableTo(change, this.seam.change.type);
  }
}

/** The properties of an object, with those of the objects that are spread into it. */
function fieldsOf(object: ObjectLiteralExpression): readonly Node[] {
  return object.properties.flatMap((node) =>
    isSpreadAssignment(node) && isObjectLiteralExpression(node.expression)
      ? fieldsOf(node.expression)
      : [node],
  );
}

/** Whether a value is written out where it stands, in every case. */
const isLiteral = (node: Node): boolean =>
  isArrayLiteralExpression(node) ||
  isObjectLiteralExpression(node) ||
  (isConditionalExpression(node) && isLiteral(node.whenTrue) && isLiteral(node.whenFalse));
