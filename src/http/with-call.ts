import { Elysia, status } from "elysia";
import { calls } from "./call.ts";
import { refuseInput } from "./check-input.ts";
import { refusalResponse } from "./errors.ts";

/** Hands the shell's view of the request to the handlers, once its query and the body that the shell has read have the right form. */
export const withCall = new Elysia({ name: "with-call", aot: false, normalize: false })
  .onParse({ as: "scoped" }, ({ request }) => calls.get(request)?.body ?? {})
  .derive({ as: "scoped" }, ({ request, query, body }) => {
    const call = calls.get(request);
    if (!call) throw new Error("a request that did not come through the shell");
    const refusal = refuseInput(call.models, query, body);
    return refusal ? status(400, refusalResponse(call, refusal)) : { call };
  });
