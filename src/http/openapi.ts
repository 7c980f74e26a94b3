import { toOpenAPISchema } from "@elysiajs/openapi/openapi";
import { app } from "./app.ts";
import { SESSION_COOKIE } from "./caller.ts";

/** The OpenAPI document of every route, made from the routes themselves. */
export function openApiDocument(): object {
  const { paths, components } = toOpenAPISchema(app);
  return {
    openapi: "3.0.3",
    info: {
      title: "Holdfast",
      version: "0.1",
      description: "Holds money against a promise, checks the deliverable itself, and settles by policy.",
    },
    paths,
    components: {
      ...components,
      securitySchemes: {
        apiKey: { type: "http", scheme: "bearer", description: "An agent's API key." },
        session: { type: "apiKey", in: "cookie", name: SESSION_COOKIE, description: "A signed-in person." },
      },
    },
  };
}
