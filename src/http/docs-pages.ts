import { ERRORS, type ErrorCode, statusOf, typeOf } from "../core/errors.ts";
import { errorResource } from "../resources/error.ts";
import evaluation from "./evaluation.md" with { type: "text" };
import receipts from "./receipts.md" with { type: "text" };

/** The pages under /docs, rendered from what the code itself knows. No script; one stylesheet of our own. */

const { escapeHTML } = Bun;

/** Markup whose variable parts have been escaped. */
type Html = string;

export const DOCS_CSS = `:root {
  color-scheme: light dark;
  --ink: #1c2330; --quiet: #5c6675; --line: #dde2ea; --paper: #fff; --tint: #f4f6f9; --accent: #0b5fa5; --mark: #fff3c4;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ink: #e4e8ee; --quiet: #98a3b3; --line: #2e3642; --paper: #14181f; --tint: #1c222b; --accent: #6cb6ff; --mark: #40391a;
  }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 16px/1.55 system-ui, sans-serif; }
main, header, footer { max-width: 54rem; margin: 0 auto; padding: 0 1.25rem; }
header { padding-top: 2rem; }
header nav, footer { color: var(--quiet); font-size: .9rem; }
footer { padding-bottom: 3rem; }
h1 { margin: .4rem 0 1rem; font-size: 1.9rem; line-height: 1.2; }
h2 { margin: 2.2rem 0 .6rem; font-size: 1.25rem; }
a { color: var(--accent); }
code { font: .92em ui-monospace, monospace; background: var(--tint); border-radius: 4px; padding: .1em .35em; }
pre { background: var(--tint); border: 1px solid var(--line); border-radius: 8px; padding: .9rem 1rem; overflow-x: auto; }
pre code { padding: 0; background: none; }
table { width: 100%; border-collapse: collapse; }
th, td { padding: .45rem .6rem .45rem 0; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; }
th { color: var(--quiet); font-size: .85rem; font-weight: 600; }
.error { border-bottom: 1px solid var(--line); padding: .7rem .6rem; scroll-margin-top: 1rem; }
.error:target { background: var(--mark); border-radius: 8px; }
.error h3 { margin: 0; font: 600 1rem/1.5 ui-monospace, monospace; }
.error h3 a { color: inherit; text-decoration: none; }
.error h3 a:hover { text-decoration: underline; }
.error p { margin: .15rem 0 0; }
.error .type { color: var(--quiet); font-size: .9rem; }
`;

function page(title: string, crumbs: Html, content: Html): Html {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHTML(title)} · Holdfast</title>
<link rel="stylesheet" href="/docs/style.css">
</head>
<body>
<header><nav>${crumbs}</nav><h1>${escapeHTML(title)}</h1></header>
<main>
${content}
</main>
</body>
</html>
`;
}

const code = (text: string): Html => `<code>${escapeHTML(text)}</code>`;
const row = (cells: readonly Html[], cell: "td" | "th" = "td"): Html =>
  `<tr>${cells.map((text) => `<${cell}>${text}</${cell}>`).join("")}</tr>`;

const table = (head: readonly string[], rows: readonly (readonly Html[])[]): Html =>
  `<table>
<thead>${row(head, "th")}</thead>
<tbody>
${rows.map((cells) => row(cells)).join("\n")}
</tbody>
</table>`;

/** Every code of the catalogue, each an anchor: `doc_url` of an error leads to one. */
export function errorsPage(): Html {
  const codes = Object.keys(ERRORS) as ErrorCode[];
  const statuses = [...new Set(codes.map(statusOf))];
  const sections = statuses.map((status) => {
    const ofStatus = codes.filter((candidate) => statusOf(candidate) === status);
    return `<h2>${status}</h2>\n${ofStatus.map(errorEntry).join("\n")}`;
  });
  const example = errorResource({ refused: "insufficient_funds", message: "…" }, "req_…", "…");
  return page(
    "Errors",
    '<a href="/docs">Holdfast</a>',
    `<p>Every error has this body. Branch on <code>code</code>, which is stable; <code>message</code> is for people and may
change. A refusal moved nothing.</p>
<pre><code>${escapeHTML(JSON.stringify(example, null, 2))}</code></pre>
${sections.join("\n")}`,
  );
}

/** How evidence becomes a verdict, for whoever writes the program again. */
export const evaluationPage = (): Html => pageOf(evaluation);

/** What the bytes of a receipt are, for whoever verifies one. */
export const receiptsPage = (): Html => pageOf(receipts);

/** A page of Markdown, whose first line is its title. */
function pageOf(markdown: string): Html {
  const [title = "", ...lines] = markdown.split("\n");
  return page(
    title.replace("# ", ""),
    '<a href="/docs">Holdfast</a>',
    Bun.markdown.html(lines.join("\n"), { headings: { ids: true }, noHtmlBlocks: true, noHtmlSpans: true }),
  );
}

function errorEntry(name: ErrorCode): Html {
  const [status, cause] = ERRORS[name];
  return `<section class="error" id="${escapeHTML(name)}">
<h3><a href="#${escapeHTML(name)}">${escapeHTML(name)}</a></h3>
<p>${escapeHTML(cause)}</p>
<p class="type">${status} · type ${code(typeOf(name))}</p>
</section>`;
}

/** One line of the endpoints' table. */
export type Endpoint = { readonly method: string; readonly path: string; readonly summary: string };

export function indexPage(endpoints: readonly Endpoint[]): Html {
  return page(
    "Holdfast",
    "Documentation",
    `<p>Holdfast holds money against a promise, checks the deliverable itself, and settles by policy.</p>
<ul>
<li><a href="/docs/api-reference/errors">Errors</a>: every code, its status and its cause</li>
<li><a href="/docs/evaluation">Evaluation</a>: how evidence becomes a verdict, for whoever wants to check one</li>
<li><a href="/docs/receipts">Receipts</a>: what a receipt proves, and how a program of your own verifies one</li>
<li><a href="/openapi.json">openapi.json</a>: every endpoint with its fields, for tools and for people</li>
</ul>
<h2>How it works</h2>
<ol>
<li><strong>Open</strong> a warrant: it names an amount, a payee, a deadline and a list of clauses. The amount is held; nobody is
paid.</li>
<li><strong>Verify</strong> it with the address of the deliverable. Holdfast fetches it itself and evaluates every clause.</li>
<li>The <strong>policy</strong> decides by the share of clauses that passed: release in full, release a part, refund, or
escalate. What is escalated stays held until a person decides.</li>
<li>Every move is in the warrant's <strong>trace</strong>; once settled it has a public <strong>receipt</strong> at
${code("/t/<id>")}.</li>
</ol>
<h2>What to know before the first call</h2>
<ul>
<li>An agent sends its API key as ${code("Authorization: Bearer …")}. It opens, verifies and reads; only a signed-in person
settles.</li>
<li>Amounts are strings of digits in the asset's smallest unit: ${code('"8400000"')} is 8.40 USDC.</li>
<li>What moves money needs an ${code("Idempotency-Key")}: one for each thing you want done, the same on every retry.</li>
<li>A key that starts with ${code("hf_test_")} is of the sandbox, where no money is real.</li>
</ul>
<h2>Endpoints</h2>
${table(
  ["Method", "Path", ""],
  endpoints.map(({ method, path, summary }) => [escapeHTML(method), code(path), escapeHTML(summary)]),
)}`,
  );
}
