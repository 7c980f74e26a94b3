import { readFileSync } from "node:fs";
import { join } from "node:path";
import type {
  ArrayLiteralExpression,
  CallExpression,
  Node,
  ObjectLiteralElementLike,
  ObjectLiteralExpression,
  SourceFile,
  SpreadAssignment,
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
  /** The first line of what is deleted, as text; for one field of several that are spread, what stands there instead. */
  readonly deleted: string;
  /** The text of the file without it. */
  readonly text: string;
  /** The same, with nothing deleted: where this does not compile either, the compiler's word on the mutant is worth nothing. */
  readonly whole: string | null;
};

/** Types from which the functions that all commands share make rows. What is optional in them, a command can forget. */
const PARTS = [
  ["src/core/warrant.ts", "Move"],
  ["src/services/transition.ts", "Details"],
  ["src/services/transition.ts", "MoveDetails"],
  ["src/services/audited.ts", "Entry"],
] as const;

/** A type with the names of the fields that it must have, and of all its fields. */
type Shape = { readonly type: Type; readonly fields: readonly string[]; readonly all: readonly string[] };

/** The mutants, and how many fields the types of the rows declare at the places that write one. */
export type Declared = { readonly mutants: readonly Mutant[]; readonly rowFields: number };

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
 * @throws where a kind of rows that the types declare has no mutant, or a place that writes a row has none for a field
 *   that the row's type declares
 */
export async function mutantsOf({ program, checker }: Project): Promise<Declared> {
  const seam = await readSeam(checker, async (path) => {
    const file = await program.getSourceFile(join(ROOT, path));
    if (!file) throw new Error(`${path} is not there`);
    return file;
  });
  const mutants: Mutant[] = [];
  const kinds = new Set<string>();
  const problems: string[] = [];
  let rowFields = 0;
  for (const name of await program.getSourceFileNames()) {
    const path = name.slice(ROOT.length + "/".length);
    if (!name.startsWith(join(ROOT, "src/")) || path.startsWith("src/store/")) continue;
    const file = await program.getSourceFile(name);
    if (!file) throw new Error(`${name} is not there`);
    const finder = new Finder(checker, seam);
    await finder.visit(file);
    for (const [node, replacements] of finder.found)
      mutants.push(...[...replacements].map(([by, whole]) => mutantOf(path, file, node, by, whole)));
    for (const { kind, untried } of finder.rows) {
      kinds.add(kind);
      rowFields += seam.rows.get(kind)?.all.length ?? 0;
      if (untried.length > 0) problems.push(`${path}: ${kind} without ${untried.join(", ")} was not tried`);
    }
  }
  for (const kind of seam.rows.keys())
    if (!kinds.has(kind)) problems.push(`no command writes a row of the kind ${kind}`);
  if (problems.length > 0) throw new Error(problems.join("\n"));
  return { mutants, rowFields };
}

function mutantOf(path: string, file: SourceFile, node: Node, by: string, whole: string | null): Mutant {
  const text = readFileSync(join(ROOT, path), "utf8");
  const start = node.getStart(file);
  const replaced = (by: string): string => text.slice(0, start) + by + text.slice(node.end);
  const lineAt = (index: number): number => text.slice(0, index).split("\n").length;
  const around: (readonly [number, number])[] = [];
  for (let outer = node; outer.parent; outer = outer.parent) {
    around.push([lineAt(outer.getStart(file)), lineAt(outer.end)]);
  }
  return {
    file: path,
    around,
    deleted: whole === null ? (text.slice(start, node.end).split("\n")[0] ?? "") : by,
    text: replaced(by),
    whole: whole && replaced(whole),
  };
}

async function readSeam(checker: Checker, open: (path: string) => Promise<SourceFile>): Promise<Seam> {
  const shapeOf = async (type: Type): Promise<Shape> => {
    const properties = await checker.getPropertiesOfType(type);
    const required = properties.filter(({ flags }) => (flags & SymbolFlags.Optional) === 0);
    return { type, fields: required.map(({ name }) => name), all: properties.map(({ name }) => name) };
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
  /** What is put in the place of each node, by mutant; with the text that would delete nothing, where there is one. */
  readonly found = new Map<Node, Map<string, string | null>>();
  /** The places that write a row, with the fields of its type for which there is no mutant. */
  readonly rows: { readonly kind: string; readonly untried: readonly string[] }[] = [];

  constructor(
    private readonly checker: Checker,
    private readonly seam: Seam,
  ) {}

  private replace(node: Node, by: string, whole: string | null = null): void {
    this.found.set(node, (this.found.get(node) ?? new Map()).set(by, whole));
  }

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
    for (const node of list.elements) this.replace(node, NO_ELEMENT);
  }

  /** Each argument of `puts.push(…)`, and each list and each Change that a function is given. */
  private async visitCall({ expression, arguments: given }: CallExpression): Promise<void> {
    const pushes = isPropertyAccessExpression(expression) && expression.name.text === "push";
    if (pushes && (await this.isWritten(expression.expression))) {
      for (const node of given) this.replace(node, NO_ELEMENT);
    }
    for (const node of given) {
      if (isLiteral(node)) continue;
      if (await this.isWritten(node)) this.replace(node, NO_LIST);
      else if (await this.isChange(node)) this.replace(node, NO_CHANGE);
    }
  }

  private async visitObject(object: ObjectLiteralExpression): Promise<void> {
    const type = await this.checker.getTypeAtLocation(object);
    if (!type) return;
    const kind = await this.rowKindOf(type);
    if (kind !== null && (await this.isTakenWhole(kind, object))) await this.visitRow(kind, object);
    if (kind !== null || (await this.isWhole(type)))
      for (const node of fieldsOf(object)) this.replace(node, NO_PROPERTY);
    for (const node of object.properties) {
      if (isSpreadAssignment(node) || !node.name) continue;
      const value = isPropertyAssignment(node) ? node.initializer : node.name;
      // The elements of a list that stands here are deleted one by one; a Change that stands here likewise.
      if (isLiteral(value)) continue;
      const name = node.name.getText();
      if (await this.isWritten(value)) this.replace(node, `${name}: []`);
      else if (name === "change" && (await this.isChange(value))) this.replace(node, NO_PROPERTY);
    }
  }

  /** Whether what takes this object asks for a whole row, as far as that is known: a function may ask for less. */
  private async isTakenWhole(kind: string, object: ObjectLiteralExpression): Promise<boolean> {
    const taken = await this.checker.getContextualType(object);
    if (!taken || taken.isUnionType()) return true;
    const names = await this.namesOf(taken);
    return names.size === 0 || this.fieldsOfRow(kind).every((field) => names.has(field));
  }

  private readonly fieldsOfRow = (kind: string): readonly string[] => this.seam.rows.get(kind)?.all ?? [];

  /** Each field of a row, also those that come with another object. */
  private async visitRow(kind: string, object: ObjectLiteralExpression): Promise<void> {
    const untried = new Set(this.fieldsOfRow(kind));
    // The last one that gives a field counts.
    for (const node of fieldsOf(object).toReversed()) {
      if (!isSpreadAssignment(node)) {
        untried.delete(node.name?.getText() ?? "");
        continue;
      }
      const type = await this.checker.getTypeAtLocation(node.expression);
      const spread = type ? await this.checker.getPropertiesOfType(type) : [];
      for (const { name } of spread) {
        if (!untried.delete(name)) continue;
        this.replace(node, withoutField(node, `${name}: _, `), withoutField(node, ""));
      }
    }
    this.rows.push({ kind, untried: [...untried] });
  }

  /** The kind of the row that an object of this type is; null where it is none. */
  private async rowKindOf(type: Type): Promise<string | null> {
    const names = await this.namesOf(type);
    for (const [kind, row] of this.seam.rows) if (await this.isA(type, names, row)) return kind;
    return null;
  }

  /** Whether every property of it counts. */
  private async isWhole(type: Type): Promise<boolean> {
    const names = await this.namesOf(type);
    for (const shape of this.seam.whole) if (await this.isA(type, names, shape)) return true;
    return false;
  }

  private readonly namesOf = async (type: Type): Promise<ReadonlySet<string>> =>
    new Set((await this.checker.getPropertiesOfType(type)).map(({ name }) => name));

  private readonly isA = async (type: Type, names: ReadonlySet<string>, shape: Shape): Promise<boolean> =>
    shape.fields.every((field) => names.has(field)) &&
    (await this.checker.isTypeAssignableTo(type, shape.type));

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

/** What is spread here, without a field. Without the name of one, nothing is left out. */
const withoutField = ({ expression }: SpreadAssignment, field: string): string =>
  `...(({ ${field}...rest }) => rest)(${expression.getText()})`;

/** The properties of an object, with those of the objects that are spread into it. */
function fieldsOf(object: ObjectLiteralExpression): readonly ObjectLiteralElementLike[] {
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
