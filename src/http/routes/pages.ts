import { Elysia } from "elysia";
import type { Call } from "../call.ts";
import { refusalResponse, routeRefusal } from "../errors.ts";
import { noQuery } from "../models.ts";
import { respondHtml, respondText } from "../pages.ts";
import { route } from "../route.ts";
import { withCall } from "../with-call.ts";

const page = (summary: string) => ({
  query: noQuery,
  detail: route({
    tags: ["Pages"],
    summary,
    access: null,
    bucket: "read",
    responses: { "200": "The page." },
  }),
});

const ALLOWED = ["script-src 'self'", "style-src 'self'", "connect-src 'self'"];

function respondPage(call: Call, path: string): Response {
  const found = call.pages[path];
  if (!found) return refusalResponse(call, routeRefusal("GET", path));
  return found.type === "text/html" ? respondHtml(found.body, ALLOWED) : respondText(found.type, found.body);
}

/** Where a person signs in and keeps passkeys and password. The contents are the console's. */
export const pageRoutes = new Elysia({ aot: false, normalize: false })
  .use(withCall)
  .get(
    "/account",
    ({ call }) => respondPage(call, "/account"),
    page("Sign in; one's own passkeys and password"),
  )
  .get(
    "/reset-password",
    ({ call }) => respondPage(call, "/reset-password"),
    page("Choose a new password by a one-time link"),
  )
  .get(
    "/console/account.js",
    ({ call }) => respondPage(call, "/console/account.js"),
    page("The pages' script"),
  )
  .get(
    "/console/account.css",
    ({ call }) => respondPage(call, "/console/account.css"),
    page("The pages' stylesheet, beside /docs/style.css"),
  );
