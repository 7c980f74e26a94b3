import { noQuery } from "../../resources/input.ts";
import { updateBody } from "../../resources/messaging.ts";
import { takeUpdate } from "../../services/messaging/updates.ts";
import { post, type Route, route } from "../route.ts";

/** The webhook to which the bot API posts what people write to the bot, and which buttons they press. */
export const messagingRoutes: readonly Route[] = [
  post(
    "/messaging/webhook",
    {
      body: updateBody,
      query: noQuery,
      detail: route({
        tags: ["Internal"],
        summary: "Take an update of the messaging bot",
        access: null,
        machine: "messaging",
        bucket: "write",
        takesText: true,
        answers: "text/plain",
        responses: {
          "200": "The update was taken, or ignored. What comes of it is sent by the bot.",
          "401": "messaging_webhook_unauthenticated",
          "403": "messaging_webhook_unset",
        },
      }),
    },
    async (call) =>
      (await takeUpdate(call.ctx, call.body)) ?? {
        status: 200,
        body: "ok\n",
        contentType: "text/plain; charset=utf-8",
      },
  ),
];
