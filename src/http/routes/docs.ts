import { Elysia } from "elysia";
import { DOCS_CSS, type Endpoint, errorsPage, indexPage } from "../docs-pages.ts";
import { route } from "../route.ts";

const tags = ["Documentation"];
const page = (summary: string) => ({
  detail: route({ tags, summary, access: null, bucket: "read", responses: { "200": "The page." } }),
});

/** The pages need their stylesheet and nothing else. */
const CONTENT_SECURITY_POLICY =
  "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const respondPage = (html: string): Response =>
  new Response(html, {
    headers: {
      "Content-Type": "text/html; charset=utf-8",
      "Content-Security-Policy": CONTENT_SECURITY_POLICY,
      "Referrer-Policy": "no-referrer",
    },
  });

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
    .get(
      "/docs/style.css",
      () => new Response(DOCS_CSS, { headers: { "Content-Type": "text/css; charset=utf-8" } }),
      page("The pages' stylesheet"),
    )
    .get("/openapi.json", () => Response.json(openApi()), page("This document"));
