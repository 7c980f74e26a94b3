import { isRefusal } from "../../core/errors.ts";
import type { PageData } from "../../core/receipt/saved-page.ts";
import { formatVerifierKey } from "../../core/signed-note.ts";
import { benchBody, checkResultForm } from "../../resources/bench.ts";
import { agentDocumentForm, instanceDocument, instanceDocumentForm } from "../../resources/did-document.ts";
import { noQuery } from "../../resources/input.ts";
import { jsonWebKeySetForm, jsonWebKeySetResource } from "../../resources/json-web-keys.ts";
import { receiptForm } from "../../resources/receipt.ts";
import type { Context } from "../../services/context.ts";
import { readAgentDocument } from "../../services/identities.ts";
import { runBench } from "../../services/run-bench.ts";
import { signReceiptPage } from "../../services/sign-receipt-page.ts";
import { readReceipt } from "../../services/warrants/read.ts";
import { prefersHtml } from "../accept.ts";
import { json, resource } from "../answers.ts";
import { networkOfClient } from "../call.ts";
import { refuseUnknownRoute } from "../errors.ts";
import { html } from "../pages.ts";
import { get, post, type Route, route } from "../route.ts";

/** A receipt with the keys that its page verifies it with. */
const pageDataOf = ({ tokens, witness }: Context, receipt: object): PageData => ({
  receipt,
  jwks: jsonWebKeySetResource(tokens.jwks),
  witnesses: witness.witnesses.map(({ key }) => formatVerifierKey(key)),
});

const PAGE_ALLOWED = ["script-src 'self'", "style-src 'self'"];
const BENCH_BYTES_MAX = 1024 * 1024;

/** The routes that anybody may call: the public receipt, the keys to verify it with, and the bench. */
export const publicRoutes: readonly Route[] = [
  get(
    "/t/:id",
    {
      query: noQuery,
      detail: route({
        tags: ["Receipts"],
        summary: "The public receipt of a settled warrant",
        access: null,
        bucket: "read",
        answers: receiptForm,
        responses: { "200": "The receipt.", "404": "warrant_not_found" },
      }),
    },
    async ({ ctx, params, headers, setup }) => {
      const receipt = await readReceipt(ctx, params.id);
      const pages = prefersHtml(headers.get("Accept")) ? setup.receiptPages : null;
      if (isRefusal(receipt)) return receipt;
      const answer = pages
        ? html(pages.served(pageDataOf(ctx, receipt)), PAGE_ALLOWED)
        : json<object>(receipt);
      return { ...answer, headers: { ...answer.headers, Vary: "Accept" } };
    },
  ),
  get(
    "/t/:id/receipt.html",
    {
      query: noQuery,
      detail: route({
        tags: ["Receipts"],
        summary: "The page of a receipt as one signed file, which loads nothing and verifies itself",
        access: null,
        bucket: "read",
        answers: "text/html",
        responses: { "200": "The file.", "404": "warrant_not_found" },
      }),
    },
    async ({ ctx, params, setup, method, path }) => {
      if (!setup.receiptPages) return refuseUnknownRoute(method, path);
      const receipt = await readReceipt(ctx, params.id);
      if (isRefusal(receipt)) return receipt;
      const page = setup.receiptPages.saved(pageDataOf(ctx, receipt));
      const answer = html(await signReceiptPage(ctx, page), []);
      const disposition = `attachment; filename="receipt-${receipt.warrant.id}.html"`;
      return { ...answer, headers: { ...answer.headers, "Content-Disposition": disposition } };
    },
  ),
  post(
    "/bench/run",
    {
      body: benchBody,
      query: noQuery,
      detail: route({
        tags: ["Bench"],
        summary: "Evaluate clauses against a described deliverable; nothing is held or recorded",
        access: null,
        bucket: "bench",
        bodyBytesMax: BENCH_BYTES_MAX,
        answers: checkResultForm,
        responses: { "200": "The check result." },
      }),
    },
    async (call) => resource(await runBench(call.ctx, call.body, networkOfClient(call))),
  ),
  get(
    "/.well-known/jwks.json",
    {
      query: noQuery,
      detail: route({
        tags: ["Receipts"],
        summary: "The public keys of vouchers and receipts, those that were rotated out among them",
        access: null,
        bucket: "read",
        answers: jsonWebKeySetForm,
        responses: { "200": "A JSON Web Key Set." },
      }),
    },
    (call) => json(jsonWebKeySetResource(call.ctx.tokens.jwks)),
  ),
  get(
    "/.well-known/did.json",
    {
      query: noQuery,
      detail: route({
        tags: ["Identities"],
        summary: "The document of the instance's did:web, with its public keys",
        access: null,
        bucket: "read",
        answers: instanceDocumentForm,
        responses: { "200": "A DID document." },
      }),
    },
    ({ ctx }) => json(instanceDocument(ctx.baseUrl, ctx.tokens.jwks)),
  ),
  get(
    "/agents/:id/did.json",
    {
      query: noQuery,
      detail: route({
        tags: ["Identities"],
        summary: "The document of an agent's did:web, with the key that it brought",
        access: null,
        bucket: "read",
        answers: agentDocumentForm,
        responses: { "200": "A DID document.", "404": "agent_not_found" },
      }),
    },
    async (call) => resource(await readAgentDocument(call.ctx, call.params.id)),
  ),
];
