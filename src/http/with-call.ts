import { Elysia } from "elysia";
import { calls } from "./call.ts";

/** Hands the shell's view of the request to the handlers, and the body that the shell has read to the validation. */
export const withCall = new Elysia({ name: "with-call", aot: false, normalize: false })
  .onParse({ as: "scoped" }, ({ request }) => calls.get(request)?.body ?? {})
  .derive({ as: "scoped" }, ({ request }) => {
    const call = calls.get(request);
    if (!call) throw new Error("a request that did not come through the shell");
    return { call };
  });
