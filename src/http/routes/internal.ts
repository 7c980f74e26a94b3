import { deliveryJobForm, deliveryJobResource } from "../../resources/delivery.ts";
import { noBody, noQuery } from "../../resources/input.ts";
import { runDeliveries } from "../../services/webhooks/deliver.ts";
import { json } from "../answers.ts";
import { reportFault } from "../call.ts";
import { post, type Route, route } from "../route.ts";

/** The jobs that an outside worker may start. The service also runs them by itself. */
export const internalRoutes: readonly Route[] = [
  post(
    "/internal/jobs/webhooks",
    {
      body: noBody,
      query: noQuery,
      detail: route({
        tags: ["Internal"],
        summary: "Attempt the webhook deliveries that are due",
        access: null,
        machine: "worker",
        bucket: "write",
        answers: deliveryJobForm,
        responses: {
          "200": "What was attempted, and how many deliveries are not over.",
          "401": "invalid_worker_secret",
          "403": "worker_secret_unset",
        },
      }),
    },
    async (call) => {
      const done = await runDeliveries(call.ctx, (error) => reportFault(call, error));
      return json(deliveryJobResource(done));
    },
  ),
];
