import { noQuery } from "../../resources/input.ts";
import { refuseUnknownRoute } from "../errors.ts";
import { html, text } from "../pages.ts";
import { get, type Route, route } from "../route.ts";

const ALLOWED = ["script-src 'self'", "style-src 'self'", "connect-src 'self'"];

const page = (path: string, summary: string, answers: `text/${string}` = "text/html"): Route =>
  get(
    path,
    {
      query: noQuery,
      detail: route({
        tags: ["Pages"],
        summary,
        answers,
        access: null,
        bucket: "read",
        responses: { "200": "The page." },
      }),
    },
    ({ setup }) => {
      const found = setup.pages[path];
      if (!found) return refuseUnknownRoute("GET", path);
      return found.type === "text/html" ? html(found.body, ALLOWED) : text(found.type, found.body);
    },
  );

/** The pages where a person signs in and manages passkeys and password. The console has their contents. */
export const pageRoutes: readonly Route[] = [
  page("/account", "Sign in; one's own passkeys and password"),
  page("/reset-password", "Choose a new password by a one-time link"),
  page("/console/receipt.js", "The script of a receipt's page", "text/javascript"),
  page("/console/receipt.css", "The stylesheet of a receipt's page", "text/css"),
  page("/console/account.js", "The pages' script", "text/javascript"),
  page("/console/account.css", "The pages' stylesheet, beside /docs/style.css", "text/css"),
];
