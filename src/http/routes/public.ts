import { Elysia } from "elysia";
import { runBench } from "../../services/run-bench.ts";
import { readReceipt } from "../../services/warrants/read.ts";
import { respond } from "../answers.ts";
import { benchBody, noQuery } from "../models.ts";
import { route } from "../route.ts";
import { withCall } from "../with-call.ts";

const BENCH_BYTES_MAX = 1024 * 1024;

/** What anyone may call: the public receipt, the keys to check it with, and the bench. */
export const publicRoutes = new Elysia({ aot: false, normalize: false })
  .use(withCall)
  .get("/t/:id", async ({ call, params }) => respond(call, await readReceipt(call.ctx, params.id)), {
    query: noQuery,
    detail: route({
      tags: ["Receipts"],
      summary: "The public receipt of a settled warrant",
      access: null,
      bucket: "read",
      responses: { "200": "The receipt.", "404": "warrant_not_found" },
    }),
  })
  .post(
    "/bench/run",
    async ({ call, body }) => respond(call, await runBench(call.ctx, body, call.address())),
    {
      body: benchBody,
      query: noQuery,
      detail: route({
        tags: ["Bench"],
        summary: "Evaluate clauses against a described deliverable; nothing is held or recorded",
        access: null,
        bucket: "bench",
        bodyBytesMax: BENCH_BYTES_MAX,
        responses: { "200": "The check result." },
      }),
    },
  )
  .get("/.well-known/jwks.json", ({ call }) => respond(call, call.ctx.tokens.jwks), {
    query: noQuery,
    detail: route({
      tags: ["Receipts"],
      summary: "The public keys of vouchers and receipts, those that were rotated out among them",
      access: null,
      bucket: "read",
      responses: { "200": "A JSON Web Key Set." },
    }),
  });
