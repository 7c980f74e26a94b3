import { refuse } from "../../core/errors.ts";
import { noQuery } from "../../resources/input.ts";
import { healthForm, healthResource, readinessForm, readinessResource } from "../../resources/operation.ts";
import { json } from "../answers.ts";
import { refuseUnknownRoute } from "../errors.ts";
import { mayReadMetrics } from "../operation.ts";
import { get, type Route, route } from "../route.ts";

const tags = ["Operation"];
// These requests are not counted. A stranger behind the same proxy could use up the rate limit, and the
// service would look unhealthy.
const open = { access: null, bucket: "read", counted: false } as const;

/** The routes for the operator's tools: whether the service runs, whether it is ready, and its metrics. */
export const operationRoutes: readonly Route[] = [
  get(
    "/healthz",
    {
      query: noQuery,
      detail: route({
        tags,
        summary: "Whether the service answers",
        ...open,
        answers: healthForm,
        responses: { "200": "It does." },
      }),
    },
    () => json(healthResource()),
  ),
  get(
    "/readyz",
    {
      query: noQuery,
      detail: route({
        tags,
        summary: "Whether the service is fit to serve: ledger, disk, jobs, audit and clock",
        ...open,
        answers: readinessForm,
        responses: { "200": "It is.", "503": "It is not; the checks say why." },
      }),
    },
    async ({ setup }) => {
      const readiness = (await setup.operation?.readiness()) ?? { ready: true, checks: [] };
      return json(readinessResource(readiness), readiness.ready ? 200 : 503);
    },
  ),
  get(
    "/metrics",
    {
      query: noQuery,
      detail: route({
        tags,
        summary: "Figures for Prometheus, to whoever has HOLDFAST_METRICS_TOKEN",
        ...open,
        answers: "text/plain",
        responses: {
          "200": "Prometheus text.",
          "401": "not_authenticated",
          "404": "route_not_found, where the token is not set",
        },
      }),
    },
    async ({ setup: { operation }, headers }) => {
      const tokenHash = operation?.metricsTokenHash ?? null;
      if (!operation || tokenHash === null) return refuseUnknownRoute("GET", "/metrics");
      if (!mayReadMetrics(headers, tokenHash)) {
        return refuse("not_authenticated", "Send the token of the metrics as Authorization: Bearer.");
      }
      const body = await operation.metrics();
      return { status: 200, body, contentType: "text/plain; version=0.0.4; charset=utf-8" };
    },
  ),
];
