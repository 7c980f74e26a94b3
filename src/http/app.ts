import { Elysia, NotFoundError } from "elysia";
import { calls } from "./call.ts";
import { faultRefusal, refusalResponse, routeRefusal } from "./errors.ts";
import type { Route } from "./openapi.ts";
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

/** To describe every model takes 5 ms, so the first request for the documentation does it, and not the start. */
const openApi = (): typeof import("./openapi.ts") => require("./openapi.ts");

/** Every route. Elysia only routes and validates; the shell around it does the rest. */
export const app = new Elysia({ aot: false, normalize: false })
  .onError(({ error, request, path }) => {
    const call = calls.get(request);
    if (!call) throw error;
    if (error instanceof NotFoundError) return refusalResponse(call, routeRefusal(request.method, path));
    call.reportFault(error);
    return refusalResponse(call, faultRefusal());
  })
  .use(warrantRoutes)
  .use(x402Routes)
  .use(consoleRoutes)
  .use(authRoutes)
  .use(passkeyRoutes)
  .use(publicRoutes)
  .use(operationRoutes)
  .use(internalRoutes)
  .use(pageRoutes)
  .use(docsRoutes({ endpoints: () => openApi().endpointsOf(routes()), openApi: openApiDocument }));

function routes(): readonly Route[] {
  return app.routes;
}

/** The OpenAPI document of every route. */
export function openApiDocument(): object {
  return openApi().describeRoutes(routes());
}
