import { Elysia } from "elysia";
import { DOCS_CSS, type Endpoint, errorsPage, indexPage } from "../docs-pages.ts";
import { respondHtml, respondText } from "../pages.ts";
import { route } from "../route.ts";

const tags = ["Documentation"];
const page = (summary: string) => ({
  detail: route({ tags, summary, access: null, bucket: "read", responses: { "200": "The page." } }),
});

/** The pages need their stylesheet and nothing else. */
const respondPage = (html: string): Response => respondHtml(html, ["style-src 'self'"]);

/** What the pages say of the routes. Functions, since the routes are known only once these ones are among them. */
export type DescribedRoutes = {
  readonly endpoints: () => readonly Endpoint[];
  readonly openApi: () => object;
};

/** `/docs`, where the links of errors lead, and the API's description. */
export const docsRoutes = ({ endpoints, openApi }: DescribedRoutes) =>
  new Elysia({ aot: false, normalize: false })
    .get("/docs", () => respondPage(indexPage(endpoints())), page("What to know before the first call"))
    .get("/docs/api-reference/errors", () => respondPage(errorsPage()), page("Every error code"))
    .get("/docs/style.css", () => respondText("text/css", DOCS_CSS), page("The pages' stylesheet"))
    .get("/openapi.json", () => Response.json(openApi()), page("This document"));
