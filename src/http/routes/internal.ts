import { Elysia } from "elysia";
import { runDeliveries } from "../../services/webhooks/deliver.ts";
import { respond } from "../answers.ts";
import { noBody, noQuery } from "../models.ts";
import { route } from "../route.ts";
import { withCall } from "../with-call.ts";

/** What a worker outside may drive, though the service does so by itself (interface.md, Internal routes). */
export const internalRoutes = new Elysia({ prefix: "/internal", aot: false, normalize: false })
  .use(withCall)
  .post(
    "/jobs/webhooks",
    async ({ call }) =>
      respond(call, { object: "job", ...(await runDeliveries(call.ctx, call.reportFault)) }),
    {
      body: noBody,
      query: noQuery,
      detail: route({
        tags: ["Internal"],
        summary: "Attempt the webhook deliveries that are due",
        access: null,
        worker: true,
        bucket: "write",
        responses: {
          "200": "What was attempted, and how many deliveries are not over.",
          "401": "invalid_worker_secret",
          "403": "worker_secret_unset",
        },
      }),
    },
  );
