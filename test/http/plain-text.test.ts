import { expect, test } from "bun:test";
import { CLAUSE_KINDS, clauseModels } from "../../src/core/clauses/registry.ts";
import { hasHiddenCharacters } from "../../src/core/hidden-characters.ts";
import { app } from "../../src/http/app.ts";

/** The texts that may have any character. Each is a secret, or a document that a machine compares byte for byte. */
const ANY_CHARACTER = [
  // A signed note is of several lines, and is verified as it is.
  "POST /.well-known/holdfast/witness/add-checkpoint ",
  // What people write to the bot is a command or a code, and is not kept.
  "POST /messaging/webhook ",
  "POST /auth/session password",
  "POST /auth/password current_password",
  "POST /auth/password new_password",
  "POST /auth/password/reset new_password",
  "POST /auth/passkeys/options password",
  "POST /auth/passkeys/:id/remove password",
  // The bench keeps nothing. These two stand for what a source answered.
  "POST /bench/run deliverable.raw",
  "POST /bench/run deliverable.emitted_topics.*",
  // A JSONPath may have blanks of any kind between its parts, a rubric several lines.
  "clause json.jsonpath path",
  "clause json.jsonpath equals",
  "clause llm.judge rubric",
];

type Model = {
  readonly type?: string;
  readonly const?: unknown;
  readonly pattern?: string;
  readonly anyOf?: readonly Model[];
  readonly properties?: Readonly<Record<string, Model>>;
  readonly additionalProperties?: boolean | Model;
  readonly items?: Model;
};

/** The paths of all fields of a form that may be any text, or any JSON at all. */
function textsOf(model: Model, path: readonly string[], found: string[]): void {
  const { anyOf, properties = {}, additionalProperties, items } = model;
  const isAnything = Object.keys(model).every((key) => key === "description");
  if ((model.type === "string" && model.const === undefined && takesHidden(model.pattern)) || isAnything)
    found.push(path.join("."));
  for (const each of anyOf ?? []) textsOf(each, path, found);
  for (const [name, each] of Object.entries(properties)) textsOf(each, [...path, name], found);
  if (typeof additionalProperties === "object") textsOf(additionalProperties, [...path, "*"], found);
  // The clauses of a body are checked by the models of their kinds.
  if (items && !("x-items" in model)) textsOf(items, [...path, "*"], found);
}

const HIDDEN = Array.from({ length: 0x10000 }, (_, code) => String.fromCharCode(code)).filter(
  hasHiddenCharacters,
);

/** Whether a text with a hidden character fits: alone, or at the start, the middle or the end of others. */
function takesHidden(pattern: string | undefined): boolean {
  if (pattern === undefined) return true;
  const expression = new RegExp(pattern);
  return HIDDEN.some((hidden) =>
    ["", "a", "1"].some((text) =>
      [hidden, hidden + text, text + hidden, text + hidden + text].some((each) => expression.test(each)),
    ),
  );
}

test("every text of a body, a query or a clause refuses hidden characters, or is listed here", () => {
  const found: string[] = [];
  for (const { method, path, hooks } of app.routes) {
    const texts: string[] = [];
    const { body, query } = hooks as { readonly body?: Model; readonly query?: Model };
    for (const model of [body, query]) if (model) textsOf(model, [], texts);
    found.push(...texts.map((text) => `${method} ${path} ${text}`));
  }
  for (const kind of CLAUSE_KINDS) {
    const texts: string[] = [];
    textsOf(clauseModels[kind] as Model, [], texts);
    found.push(...texts.map((text) => `clause ${kind} ${text}`));
  }
  expect(found.sort()).toEqual([...ANY_CHARACTER].sort());
});
