import { Type } from "@sinclair/typebox";
import { type Answer, json } from "../answers.ts";
import {
  DOCS_CSS,
  type Endpoint,
  errorsPage,
  evaluationPage,
  indexPage,
  receiptsPage,
} from "../docs-pages.ts";
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

const docsPage = (body: string): Answer => html(body, ["style-src 'self'"]);

/**
 * What the pages show of all routes. It is asked for with each request, because these routes are declared
 * before the list of routes is complete.
 */
export type DescribedRoutes = {
  readonly endpoints: () => readonly Endpoint[];
  readonly openApi: () => object;
};

/** `/docs`, which the links in errors lead to, and the API's description. */
export const docsRoutes = ({ endpoints, openApi }: DescribedRoutes): readonly Route[] => [
  get("/docs", page("What to know before the first call"), () => docsPage(indexPage(endpoints()))),
  get("/docs/api-reference/errors", page("Every error code"), () => docsPage(errorsPage())),
  get("/docs/evaluation", page("How evidence becomes a verdict"), () => docsPage(evaluationPage())),
  get("/docs/receipts", page("What a receipt proves, and how to verify one"), () => docsPage(receiptsPage())),
  get("/docs/style.css", page("The pages' stylesheet", "text/css"), () => text("text/css", DOCS_CSS)),
  get("/openapi.json", page("This document", documentForm), () => json(openApi())),
];
