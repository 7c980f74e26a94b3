import { Elysia } from "elysia";
import type { Route } from "./route.ts";
import { authRoutes } from "./routes/auth.ts";
import { consoleRoutes } from "./routes/console.ts";
import { docsRoutes } from "./routes/docs.ts";
import { internalRoutes } from "./routes/internal.ts";
import { logRoutes } from "./routes/log.ts";
import { messagingRoutes } from "./routes/messaging.ts";
import { operationRoutes } from "./routes/operation.ts";
import { pageRoutes } from "./routes/pages.ts";
import { passkeyRoutes } from "./routes/passkeys.ts";
import { publicRoutes } from "./routes/public.ts";
import { warrantRoutes } from "./routes/warrants.ts";
import { witnessRoutes } from "./routes/witness.ts";
import { x402Routes } from "./routes/x402.ts";

/** To describe every model takes 5 ms, so the first request for the documentation does it, and not the start. */
const openApi = (): typeof import("./openapi.ts") => require("./openapi.ts");

const routes: readonly Route[] = [
  ...warrantRoutes,
  ...x402Routes,
  ...consoleRoutes,
  ...authRoutes,
  ...passkeyRoutes,
  ...publicRoutes,
  ...logRoutes,
  ...witnessRoutes,
  ...operationRoutes,
  ...internalRoutes,
  ...messagingRoutes,
  ...pageRoutes,
  ...docsRoutes(openApiDocument),
];

/** The table of all routes. Elysia finds the route of a path; the shell calls the route's handler. */
export const app = new Elysia({ aot: false, normalize: false });
const routesByHandler = new Map<unknown, Route>();
for (const route of routes) {
  const { method, path, handle, models, detail } = route;
  // Elysia keeps the handler and never calls it, so the type that Elysia expects of a handler does not matter.
  app.route(method, path, handle as never, { ...models, detail });
  routesByHandler.set(handle, route);
}

export type FoundRoute = {
  readonly route: Pick<Route, "path" | "models" | "rule" | "handle">;
  readonly params: Readonly<Record<string, string>>;
};

/** The route of a method and a path, with the path's parameters decoded; null where there is no such route. */
export function findRoute(method: string, path: string): FoundRoute | null {
  const found = app.router.dynamic.find(method, path);
  const route = routesByHandler.get(found?.store.handle);
  if (!found || !route) return null;
  // A parameter with broken percent-encoding is null here. The empty text names no resource, so it is answered with 404.
  if (path.includes("%")) for (const name in found.params) found.params[name] ??= "";
  return { route, params: found.params };
}

/** The OpenAPI document of all routes. */
export function openApiDocument(): object {
  return openApi().describeRoutes(app.routes);
}
