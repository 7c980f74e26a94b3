import { ERRORS, type ErrorCode, statusOf, typeOf } from "../core/errors.ts";
import { pathOf } from "./contents.ts";

/** Markup whose variable parts have been escaped. */
type Html = string;

/** What is below one heading, as text: what the search looks through. */
export type Section = { readonly id: string; readonly title: string; readonly text: string };

export type Rendered = {
  readonly title: string;
  /** The first paragraph, as text: what the contents say of the page. */
  readonly summary: string;
  readonly body: Html;
  readonly headings: readonly { readonly level: number; readonly id: string; readonly html: Html }[];
  /** The first is what is above all headings, and has the page's own title. */
  readonly sections: readonly Section[];
};

const HEADING = /<h([2-4])>(.*?)<\/h\1>/g;

/** A page of Markdown, whose first line is its title. HTML in it is shown as it is written. */
export function renderMarkdown(markdown: string): Rendered {
  const [first = "", ...lines] = markdown.split("\n");
  const title = first.replace(/^# /, "");
  const headings: { level: number; id: string; html: Html }[] = [];
  const body = Bun.markdown
    .html(lines.join("\n"), { noHtmlBlocks: true, noHtmlSpans: true })
    .replace(
      / href="([a-z0-9-]+)\.md(#[^"]*)?"/g,
      (_, name, anchor) => ` href="${pathOf(name)}${anchor ?? ""}"`,
    )
    // What may be wider than the page is scrolled by the keyboard too.
    .replaceAll("<pre>", '<pre tabindex="0">')
    .replaceAll("<table>", '<div class="wide" tabindex="0"><table>')
    .replaceAll("</table>", "</table></div>")
    .replace(HEADING, (_, level, html) => {
      const id = freeId(slugOf(textOf(html)), headings);
      headings.push({ level: Number(level), id, html });
      return `<h${level} id="${id}"><a href="#${id}">${html}</a></h${level}>${isError(id) ? errorLine(id) : ""}`;
    });
  const summary = textOf(/<p>(.*?)<\/p>/s.exec(body)?.[1] ?? "");
  return { title, summary, body, headings, sections: sectionsOf(title, body) };
}

const isError = (id: string): id is ErrorCode => Object.hasOwn(ERRORS, id);

/** Status, type and cause of an error come from the catalogue itself, so that they cannot differ from it. */
const errorLine = (code: ErrorCode): Html =>
  `\n<p class="quiet">${statusOf(code)} · type <code>${typeOf(code)}</code></p>\n<p>${Bun.escapeHTML(ERRORS[code][1])}</p>`;

/** The anchor of a heading, as GitHub makes it, so that the same links work there. */
const slugOf = (text: string): string =>
  text
    .toLowerCase()
    .replace(/[^\p{L}\p{N} _-]/gu, "")
    .replaceAll(" ", "-");

function freeId(slug: string, taken: readonly { readonly id: string }[]): string {
  const same = taken.filter(({ id }) => id.replace(/-\d+$/, "") === slug).length;
  return same === 0 ? slug : `${slug}-${same}`;
}

const ENTITIES: Readonly<Record<string, string>> = {
  "&lt;": "<",
  "&gt;": ">",
  "&quot;": '"',
  "&#x27;": "'",
  "&amp;": "&",
};

const textOf = (html: Html): string =>
  html
    .replace(/<[^>]*>/g, "")
    .replace(/&[a-z#0-9]+;/g, (entity) => ENTITIES[entity] ?? entity)
    .replace(/\s+/g, " ")
    .trim();

function sectionsOf(title: string, body: Html): Section[] {
  return body.split(/(?=<h[2-4] id=)/).map((part) => {
    const [, id = "", heading = title, rest = part] =
      /^<h[2-4] id="([^"]*)">(.*?)<\/h[2-4]>(.*)$/s.exec(part) ?? [];
    return { id, title: textOf(heading), text: textOf(rest.replace(/<\/(p|li|td|th|pre)>/g, " ")) };
  });
}
