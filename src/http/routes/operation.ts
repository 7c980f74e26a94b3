import { Elysia } from "elysia";
import { refuse } from "../../core/errors.ts";
import { respond } from "../answers.ts";
import { refusalResponse, routeRefusal } from "../errors.ts";
import { noQuery } from "../models.ts";
import { mayReadMetrics } from "../operation.ts";
import { route } from "../route.ts";
import { withCall } from "../with-call.ts";

const tags = ["Operation"];
// Strangers behind the same proxy must not make a healthy service look ill.
const open = { access: null, bucket: "read", counted: false } as const;

/** What an operator's tools ask: whether the service is up, whether it is fit to serve, and its figures. */
export const operationRoutes = new Elysia({ aot: false, normalize: false })
  .use(withCall)
  .get("/healthz", ({ call }) => respond(call, { object: "health", status: "ok" }), {
    query: noQuery,
    detail: route({
      tags,
      summary: "Whether the service answers",
      ...open,
      responses: { "200": "It does." },
    }),
  })
  .get(
    "/readyz",
    async ({ call }) => {
      const readiness = (await call.operation?.readiness()) ?? {
        object: "readiness",
        ready: true,
        checks: [],
      };
      return respond(call, readiness, readiness.ready ? 200 : 503);
    },
    {
      query: noQuery,
      detail: route({
        tags,
        summary: "Whether the service is fit to serve: ledger, disk, jobs, books and clock",
        ...open,
        responses: { "200": "It is.", "503": "It is not; the checks say why." },
      }),
    },
  )
  .get(
    "/metrics",
    async ({ call, request }) => {
      const tokenHash = call.operation?.metricsTokenHash ?? null;
      if (!call.operation || tokenHash === null)
        return refusalResponse(call, routeRefusal("GET", "/metrics"));
      if (!mayReadMetrics(request.headers, tokenHash)) {
        return refusalResponse(call, refuse("not_authenticated", "Send the metrics' token as a bearer."));
      }
      return new Response(await call.operation.metrics(), {
        headers: { "Content-Type": "text/plain; version=0.0.4; charset=utf-8" },
      });
    },
    {
      query: noQuery,
      detail: route({
        tags,
        summary: "Figures for Prometheus, to whoever has HOLDFAST_METRICS_TOKEN",
        ...open,
        responses: {
          "200": "Prometheus text.",
          "401": "not_authenticated",
          "404": "route_not_found, where the token is not set",
        },
      }),
    },
  );
