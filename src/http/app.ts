import { Elysia } from "elysia";
import { describeRoutes, endpointsOf } from "./openapi.ts";
import type { Route } from "./route.ts";
import { authRoutes } from "./routes/auth.ts";
import { consoleRoutes } from "./routes/console.ts";
import { docsRoutes } from "./routes/docs.ts";
import { internalRoutes } from "./routes/internal.ts";
import { operationRoutes } from "./routes/operation.ts";
import { pageRoutes } from "./routes/pages.ts";
import { passkeyRoutes } from "./routes/passkeys.ts";
import { publicRoutes } from "./routes/public.ts";
import { warrantRoutes } from "./routes/warrants.ts";
import { x402Routes } from "./routes/x402.ts";

const routes: readonly Route[] = [
  ...warrantRoutes,
  ...x402Routes,
  ...consoleRoutes,
  ...authRoutes,
  ...passkeyRoutes,
  ...publicRoutes,
  ...operationRoutes,
  ...internalRoutes,
  ...pageRoutes,
  ...docsRoutes({ endpoints: () => endpointsOf(app.routes), openApi: openApiDocument }),
];

/** The table of every route. Elysia finds the route of a path; the shell calls the route's handler itself. */
export const app = new Elysia({ aot: false, normalize: false });
const routesByHandler = new Map<unknown, Route>();
for (const route of routes) {
  const { method, path, handle, models, detail } = route;
  // Elysia never calls it, so it need not be what Elysia's own handlers are.
  app.route(method, path, handle as never, { ...models, detail } as never);
  routesByHandler.set(handle, route);
}

export type FoundRoute = { readonly route: Route; readonly params: Readonly<Record<string, string>> };

/** The route of a method and a path, and the path's parameters, percent-decoded; null where there is none. */
export function findRoute(method: string, path: string): FoundRoute | null {
  const found = app.router.dynamic.find(method, path);
  const route = routesByHandler.get(found?.store.handle);
  if (!found || !route) return null;
  // What cannot be decoded is null there. No resource has an empty name, so it is not found.
  if (path.includes("%")) for (const name in found.params) found.params[name] ??= "";
  return { route, params: found.params };
}

/** The OpenAPI document of every route. */
export function openApiDocument(): object {
  return describeRoutes(app.routes);
}
