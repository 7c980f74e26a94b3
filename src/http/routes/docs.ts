import { Type } from "@sinclair/typebox";
import type { OpenApi } from "../../docs/api-reference.ts";
import {
  ALLOWED,
  INTERACTIVE,
  interactivePage,
  SCALAR,
  START,
  scalarText,
} from "../../docs/interactive-reference.ts";
import { indexPage, PAGES, referencePage, searchPage } from "../../docs/pages.ts";
import { PICTURES } from "../../docs/pictures.ts";
import script from "../../docs/search-box.js" with { type: "text" };
import style from "../../docs/style.css" with { type: "text" };
import { closed, plainText } from "../../resources/input.ts";
import { type Answer, bytes, json } from "../answers.ts";
import { html, text } from "../pages.ts";
import { type Answers, get, type Route, route } from "../route.ts";

const page = (summary: string, answers: Answers = "text/html") => ({
  detail: route({
    tags: ["Documentation"],
    summary,
    answers,
    access: null,
    bucket: "read",
    responses: { "200": "The page." },
  }),
});

const documentForm = () => Type.Unsafe<object>({ type: "object" });

const searchQuery = Type.Object(
  { q: Type.Optional(plainText({ lengthMax: 200, description: "the words to look for" })) },
  closed,
);

/** It is the largest file by far, and changes with the executable. */
const FOR_AN_HOUR = { "Cache-Control": "public, max-age=3600" };

const docsPage = (body: string): Answer =>
  html(body, ["script-src 'self'", "style-src 'self'", "connect-src 'self'", "img-src 'self'"], true);

/**
 * `/docs`, which the links in errors lead to, and the API's description.
 *
 * @param openApi asked for with a request, because these routes are declared before the list of routes is complete
 */
export const docsRoutes = (openApi: () => object): readonly Route[] => [
  get("/docs", page("What to know before the first call"), () => docsPage(indexPage())),
  get("/docs/api-reference", page("Every request, as a page"), () =>
    docsPage(referencePage(() => openApi() as OpenApi)),
  ),
  get(INTERACTIVE, page("Every request, in Scalar"), () => html(interactivePage(), ALLOWED)),
  get(START.path, page("The script of that page", "text/javascript"), () =>
    text("text/javascript", START.body),
  ),
  get(SCALAR, page("Scalar", "text/javascript"), async () => ({
    ...text("text/javascript", await scalarText()),
    headers: FOR_AN_HOUR,
  })),
  ...PAGES.map(({ path, page: written }) =>
    get(path, page("A page of the documentation"), () => docsPage(written())),
  ),
  get("/docs/search", { ...page("What the pages say of some words"), query: searchQuery }, ({ query }) =>
    docsPage(searchPage(query.q ?? "", () => openApi() as OpenApi)),
  ),
  get("/docs/search.js", page("The script of the search box", "text/javascript"), () =>
    text("text/javascript", script),
  ),
  ...Object.entries(PICTURES).map(([path, read]) =>
    get(path, page("A picture that a page shows", "image/png"), async () => ({
      ...bytes(await read(), {}),
      contentType: "image/png",
    })),
  ),
  get("/docs/style.css", page("The pages' stylesheet", "text/css"), () => text("text/css", style)),
  get("/openapi.json", page("This document", documentForm), () => json(openApi())),
];
