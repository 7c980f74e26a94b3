import { ACCESS } from "../../core/roles.ts";
import { noQuery } from "../../resources/input.ts";
import { payBody, paymentForm } from "../../resources/purchase.ts";
import { payForUrl } from "../../services/x402/pay.ts";
import { payment } from "../answers.ts";
import { callerOf, idempotencyOf, roomOf } from "../call.ts";
import { post, type Route, route } from "../route.ts";

/** `/v1/x402` (docs/x402, "Buying by x402"). */
export const x402Routes: readonly Route[] = [
  post(
    "/v1/x402/pay",
    {
      body: payBody,
      query: noQuery,
      detail: route({
        tags: ["x402"],
        summary: "Fetch a URL, pay what its 402 asks within a ceiling, settle on whether the answer passes",
        access: ACCESS.openWarrant,
        idempotent: true,
        bucket: "write",
        answers: paymentForm,
        responses: {
          "200": "What came of it: paid or not, and the seller's answer.",
          "400": "upstream_unreachable, x402_challenge_invalid, …",
          "402": "insufficient_funds",
          "403": "content_quota_exceeded, kill_switch_active, …",
        },
      }),
    },
    async (call) =>
      payment(
        await payForUrl(call.ctx, callerOf(call), call.body, idempotencyOf(call), call.left()),
        roomOf(call),
      ),
  ),
];
