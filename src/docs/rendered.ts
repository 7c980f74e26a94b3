import type { Rendered } from "./markdown.ts";
import { renderedPages } from "./pages.macro.ts" with { type: "macro" };

/** The pages as HTML, by name. Loaded with the first page that is asked for: from the source, they are rendered then. */
export const RENDERED: Readonly<Record<string, Rendered>> = renderedPages();
