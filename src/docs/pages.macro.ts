import { readFileSync } from "node:fs";
import { MARKDOWN_PAGES } from "./contents.ts";
import { type Rendered, renderMarkdown } from "./markdown.ts";

/** Runs when the code is bundled or loaded: the executable has the pages as HTML, by name. */
export const renderedPages = (): Record<string, Rendered> =>
  Object.fromEntries(
    MARKDOWN_PAGES.map((name) => [
      name,
      renderMarkdown(readFileSync(`${import.meta.dir}/${name}.md`, "utf8")),
    ]),
  );
