import { apiReference, type OpenApi } from "./api-reference.ts";
import { API_REFERENCE, GROUPS, MARKDOWN_PAGES, pathOf } from "./contents.ts";
import type { Rendered } from "./markdown.ts";
import { createSearch } from "./search.ts";

/** The pages under /docs, complete. One stylesheet and one script of our own; each page, and the search, works without the script. */

const { escapeHTML } = Bun;

/** Markup whose variable parts have been escaped. */
type Html = string;

/** To load the pages takes time, so the first request for the documentation does it, and not the start. */
const rendered = (): Readonly<Record<string, Rendered>> =>
  (require("./rendered.ts") as typeof import("./rendered.ts")).RENDERED;

/** The path of every page that is written in Markdown, and its page. */
export const PAGES: readonly { readonly path: string; readonly page: () => Html }[] = MARKDOWN_PAGES.map(
  (name) => ({ path: pathOf(name), page: () => markdownPage(name) }),
);

function markdownPage(name: string): Html {
  const { title, body, headings } = pageOf(name);
  const chapters = headings.filter(({ level }) => level === 2 || (level === 3 && headings.length <= 40));
  const toc = chapters.map(
    ({ level, id, html }) => `<li class="level-${level}"><a href="#${id}">${html}</a></li>`,
  );
  const inside = `<details class="inside"><summary>On this page</summary>\n<ul>\n${toc.join("\n")}\n</ul>\n</details>\n`;
  return frame(pathOf(name), title, (toc.length > 2 ? inside : "") + body);
}

function pageOf(name: string): Rendered {
  const page = rendered()[name];
  if (!page) throw new Error(`there is no page ${name}`);
  return page;
}

const REFERENCE = { title: "API reference", summary: "Every request, its fields and what it answers." };

/** What the contents say of a page. */
const aboutOf = (name: string): Pick<Rendered, "title" | "summary"> =>
  name === API_REFERENCE ? REFERENCE : pageOf(name);

/** The front page: what each page is about. */
export function indexPage(): Html {
  const groups = GROUPS.map(([heading, names]) => {
    const items = names.map((name) => {
      const { title, summary } = aboutOf(name);
      return `<dt><a href="${pathOf(name)}">${escapeHTML(title)}</a></dt>\n<dd>${escapeHTML(summary)}</dd>`;
    });
    return `<h2>${escapeHTML(heading)}</h2>\n<dl>\n${items.join("\n")}\n</dl>`;
  });
  return frame(
    "/docs",
    "Holdfast",
    `<p>Holdfast holds money against a promise, checks the deliverable itself, and settles by policy.</p>
${groups.join("\n")}`,
  );
}

let reference: ReturnType<typeof apiReference> | null = null;

const referenceOf = (document: () => OpenApi): ReturnType<typeof apiReference> => {
  reference ??= apiReference(document());
  return reference;
};

/** Every request that the service answers. @param document the OpenAPI document, which is asked for once */
export const referencePage = (document: () => OpenApi): Html =>
  frame(pathOf(API_REFERENCE), REFERENCE.title, referenceOf(document).body);

let search: ReturnType<typeof createSearch> | null = null;

/** Where the pages say it: the best places first, as a page that works without a script. */
export function searchPage(query: string, document: () => OpenApi): Html {
  search ??= createSearch(
    GROUPS.flatMap(([, names]) =>
      names.flatMap((name) => {
        const { sections } = name === API_REFERENCE ? referenceOf(document) : pageOf(name);
        return sections.map((section) => ({ ...section, path: pathOf(name), page: aboutOf(name).title }));
      }),
    ),
  );
  const items = search(query).map(({ path, id, title, page, text }) => {
    const [link, where] = [
      id === "" ? path : `${path}#${id}`,
      title === page ? "" : ` <small>${escapeHTML(page)}</small>`,
    ];
    return `<li><a href="${escapeHTML(link)}">${escapeHTML(title)}${where}</a> <span class="quiet">${escapeHTML(text.slice(0, BEGINNING))}</span></li>`;
  });
  const list =
    items.length === 0
      ? "<p>Nothing is found. Try one word, or its beginning.</p>"
      : `<ol>\n${items.join("\n")}\n</ol>`;
  return frame("/docs/search", "Search", `<div id="results">\n${list}\n</div>`, query);
}

/** How much of a section the search shows, in characters. */
const BEGINNING = 160;

/** The contents come after the page, so that a phone shows the page first; a wide screen shows them at its left. */
const frame = (path: string, title: string, content: Html, query = ""): Html => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHTML(title)} · Holdfast</title>
<link rel="stylesheet" href="/docs/style.css">
<script type="module" src="/docs/search.js"></script>
</head>
<body class="docs">
<header><a class="skip" href="#page">To the text</a><nav><a href="/docs">Holdfast</a> documentation<a class="to-contents" href="#contents">Contents</a></nav>
<form id="search" role="search" action="/docs/search"><input type="search" name="q" value="${escapeHTML(query)}" maxlength="200" placeholder="Search" aria-label="Search the documentation" autocomplete="off"></form>
<div id="found" aria-live="polite" hidden></div></header>
<main id="page">
<h1>${escapeHTML(title)}</h1>
${content}
</main>
<nav id="contents" aria-label="Contents">
${contents(path)}
</nav>
</body>
</html>
`;

function contents(path: string): Html {
  const groups = GROUPS.map(([heading, names]) => {
    const items = names.map((name) => {
      const here = pathOf(name) === path ? ' aria-current="page"' : "";
      return `<li><a href="${pathOf(name)}"${here}>${escapeHTML(aboutOf(name).title)}</a></li>`;
    });
    return `<h2>${escapeHTML(heading)}</h2>\n<ul>\n${items.join("\n")}\n</ul>`;
  });
  return groups.join("\n");
}
