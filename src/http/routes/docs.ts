import { type Answer, json } from "../answers.ts";
import { DOCS_CSS, type Endpoint, errorsPage, indexPage } from "../docs-pages.ts";
import { html, text } from "../pages.ts";
import { get, type Route, route } from "../route.ts";

const page = (summary: string) => ({
  detail: route({
    tags: ["Documentation"],
    summary,
    access: null,
    bucket: "read",
    responses: { "200": "The page." },
  }),
});

const docsPage = (body: string): Answer => html(body, ["style-src 'self'"]);

/** What the pages show of all routes. Called with each request, because these routes are declared before the list is complete. */
export type DescribedRoutes = {
  readonly endpoints: () => readonly Endpoint[];
  readonly openApi: () => object;
};

/** `/docs`, which the links in errors lead to, and the API's description. */
export const docsRoutes = ({ endpoints, openApi }: DescribedRoutes): readonly Route[] => [
  get("/docs", page("What to know before the first call"), () => docsPage(indexPage(endpoints()))),
  get("/docs/api-reference/errors", page("Every error code"), () => docsPage(errorsPage())),
  get("/docs/style.css", page("The pages' stylesheet"), () => text("text/css", DOCS_CSS)),
  get("/openapi.json", page("This document"), () => json(openApi())),
];
