import { consoleRoutes } from "../../src/console/routes.ts";

/**
 * Walks the console as a person does: from every page of the route table without a parameter, by the links that pages have, and
 * by each choice of their filters. So a page that is added is walked too.
 */

/** What a page answers. */
export type Answered = { readonly status: number; readonly html: string };

export type Walked = Answered & {
  /** The pattern of the route, such as `/console/warrants/:id`. */
  readonly route: string;
  /** The path that was asked for, with its query. */
  readonly path: string;
  /** Whether somebody who is signed in sees it; else it is for strangers. */
  readonly hasPerson: boolean;
};

type Walk = {
  /** Asks for a page. Without a person it is a page for somebody who is not signed in. */
  readonly ask: (path: string, hasPerson: boolean) => Promise<Answered>;
  /** What is searched for in each list that has a search: something that is there, and something that is nowhere. */
  readonly searches: readonly string[];
};

/** How many addresses that differ in ids and cursors alone are walked: a first page of a list, and a later one. */
const ALIKE_MAX = 2;
/** How many choices of one filter are tried. */
const CHOICES_MAX = 12;

const PAGES = consoleRoutes(false).filter(
  ({ method, kind }) => method === "GET" && (kind === "page" || kind === "open"),
);

const patternOf = (path: string) => new RegExp(`^${path.replaceAll(/:\w+/g, "[A-Za-z0-9_-]{1,64}")}$`);
const PATTERNS = PAGES.map((page) => ({ page, pattern: patternOf(page.path) }));
const pageAt = (path: string) => PATTERNS.find(({ pattern }) => pattern.test(path))?.page;

/** @returns the pages, and the routes to which nothing led */
export async function walkConsole({ ask, searches }: Walk) {
  const waiting = PAGES.map(({ path }) => path).filter((path) => !path.includes(":"));
  const alike = new Map<string, number>();
  const seen = new Set<string>();
  const leftOut: string[] = [];
  const walked: Walked[] = [];
  const missed = () =>
    PAGES.map(({ path }) => path).filter((path) => !walked.some(({ route }) => route === path));

  async function walk(path: string, page: (typeof PAGES)[number]): Promise<void> {
    const hasPerson = page.access !== null;
    const { status, html } = await ask(path, hasPerson);
    walked.push({ route: page.path, path, hasPerson, status, html });
    for (const next of [...linksOf(html, path), ...filteredOf(html, searches)]) {
      if (!seen.has(next)) waiting.push(next);
      seen.add(next);
    }
  }

  for (;;) {
    const path = waiting.shift();
    if (path !== undefined) {
      const { pathname, searchParams } = new URL(path, "http://console");
      const page = pageAt(pathname);
      if (page === undefined) continue;
      const kind = [page.path, ...[...searchParams].map(kindOf).sort()].join(" ");
      const before = alike.get(kind) ?? 0;
      alike.set(kind, before + 1);
      if (before < ALIKE_MAX) await walk(path, page);
      else leftOut.push(path);
      continue;
    }
    // Some pages are led to by few of those that are alike: a key by the agent that has one.
    const more = missed().length > 0 ? leftOut.shift() : undefined;
    if (more === undefined) return { walked, missed: missed() };
    const page = pageAt(new URL(more, "http://console").pathname);
    if (page) await walk(more, page);
  }
}

/** Ids, cursors and offsets are alike; every other value of a query is a page of its own. */
const kindOf = ([name, value]: readonly [string, string]): string =>
  /^\d+$|^[a-z]{3}_[0-9A-Z]{26}$/.test(value) || name === "after" || name === "before"
    ? name
    : `${name}=${value}`;

/** What a page loads besides itself. */
export const loadedBy = (html: string): readonly string[] => [
  ...new Set([
    ...attributesOf(html, "link[rel=stylesheet], link[rel=icon]", "href"),
    ...attributesOf(html, "script[src], img[src]", "src"),
  ]),
];

const linksOf = (html: string, from: string): readonly string[] =>
  attributesOf(html, "a[href]", "href")
    .map((href) => new URL(href, `http://console${from}`))
    .filter(({ host, pathname }) => host === "console" && pathname.startsWith("/console"))
    .map(({ pathname, search }) => pathname + search);

/** The addresses to which the filters of a page lead, one filter at a time. */
function filteredOf(html: string, searches: readonly string[]): readonly string[] {
  const found: string[] = [];
  for (const [form = ""] of html.matchAll(/<form[^>]* method="get"[\s\S]*?<\/form>/g)) {
    const [action = ""] = attributesOf(form, "form", "action");
    for (const name of attributesOf(form, "input[type=search]", "name"))
      found.push(...searches.map((value) => `${action}?${new URLSearchParams({ [name]: value })}`));
    for (const [select = ""] of form.matchAll(/<select[\s\S]*?<\/select>/g)) {
      const [name = ""] = attributesOf(select, "select", "name");
      const values = attributesOf(select, "option", "value").filter((value) => value !== "");
      for (const value of values.slice(0, CHOICES_MAX))
        found.push(`${action}?${new URLSearchParams({ [name]: value })}`);
    }
  }
  return found;
}

function attributesOf(html: string, selector: string, name: string): readonly string[] {
  const values: string[] = [];
  const element = (one: HTMLRewriterTypes.Element) => {
    const value = one.getAttribute(name);
    if (value !== null) values.push(value.replaceAll("&amp;", "&"));
  };
  new HTMLRewriter().on(selector, { element }).transform(html);
  return values;
}
