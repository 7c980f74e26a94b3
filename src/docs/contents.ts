/** The page that is made from the OpenAPI document. */
export const API_REFERENCE = "api-reference";

/**
 * The pages under /docs, in the order of the contents. A page is the file of its name in this folder: add the file, and its
 * name here.
 */
export const GROUPS: readonly (readonly [heading: string, names: readonly string[]])[] = [
  ["Begin", ["start", "concepts"]],
  [
    "Use it",
    [
      "clauses",
      "policies",
      "sessions",
      "people",
      "console",
      "webhooks",
      "x402",
      "money",
      "solvency",
      "idempotency",
    ],
  ],
  ["Run it", ["operating", "postgresql", "notices", "witnesses"]],
  ["Look up", [API_REFERENCE, "errors", "events", "metrics", "configuration", "commands"]],
  ["Trust it", ["security", "receipts", "evaluation", "decisions", "measurements", "packages"]],
];

/** The pages that are files of Markdown. */
export const MARKDOWN_PAGES = GROUPS.flatMap(([, names]) => names).filter((name) => name !== API_REFERENCE);

/** A page whose address others keep is where they expect it: `doc_url` of every error leads to the first. */
const MOVED: Readonly<Record<string, string>> = { errors: "/docs/api-reference/errors" };

export const pathOf = (name: string): string => MOVED[name] ?? `/docs/${name}`;
