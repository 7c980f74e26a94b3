import { isRefusal, type Refusal, refuseField } from "../core/errors.ts";
import type { Idempotency } from "../services/idempotency.ts";
import type { Answer, Result } from "./answers.ts";
import type { FoundRoute } from "./app.ts";
import { type Call, callerOf, clientOfCall } from "./call.ts";
import { idempotencyOfRequest, readIdempotencyKey } from "./idempotency.ts";
import { type Asked, html, type Shown, type SitePage, text } from "./pages.ts";
import { BODY_BYTES_MAX, type RouteRule } from "./route.ts";
import { refuseThrottled, signedIn, signedOut } from "./routes/auth.ts";

/** Scripts, styles and pictures are ours, and a form is sent to us alone. */
const ALLOWED = ["script-src 'self'", "style-src 'self'", "connect-src 'self'", "img-src 'self'"];
/** A file's path carries the hash of its content, so it never changes. */
const FOR_GOOD = { "Cache-Control": "public, max-age=31536000, immutable" };
/** A worker loads nothing, and a browser asks each time whether there is a newer one. */
const OF_WORKER = { "Content-Security-Policy": "default-src 'none'", "Cache-Control": "no-cache" };
/** A proxy in front sends on what comes, and keeps nothing back. */
const AT_ONCE = { "X-Accel-Buffering": "no" };
const FORM_TYPE = /^application\/x-www-form-urlencoded\s*(;|$)/i;
/** The field of a form that carries its Idempotency-Key. */
const KEY_FIELD = "_key";

/** The page of the console at the path of a request, as a route; null where there is none. */
export function findPage(call: Call): FoundRoute | null {
  const page = call.setup.site?.find(call.method, call.path) ?? null;
  if (page === null) return null;
  // Before anything is read: what changes after that is told.
  const position = call.ctx.live.position();
  call.showRefusal = (refusal) => answerOf(page.refuse(askedOf(call, position, {}), refusal));
  const rule: RouteRule = {
    // A page is for people. An API key sees none, whatever it may do elsewhere.
    access: page.access && { ...page.access, keys: false },
    machine: null,
    idempotent: false,
    decides: false,
    bucket: call.method === "GET" ? "read" : "write",
    counted: true,
    bodyBytesMax: BODY_BYTES_MAX,
    takesText: true,
    ownPagesOnly: call.method !== "GET",
  };
  const handle = (asking: Call): Promise<Result> => pageResult(asking, page, position);
  return { route: { path: page.path, models: {}, rule, handle }, params: page.params };
}

async function pageResult(call: Call, page: SitePage, position: string): Promise<Result> {
  const sent = call.method === "GET" ? {} : readFields(call);
  if (isRefusal(sent)) return sent;
  const { [KEY_FIELD]: key, ...fields } = sent;
  const idempotency = call.method === "GET" || page.access === null ? null : idempotencyOf(call, key, fields);
  if (isRefusal(idempotency)) return idempotency;
  const shown = await page.answer({ ...askedOf(call, position, fields), idempotency });
  if (isRefusal(shown)) return refuseThrottled(call, shown);
  const answer = answerOf(shown);
  if (shown.kind !== "redirect" || shown.session === undefined) return answer;
  const session = shown.session
    ? await signedIn(call, shown.session, shown.by ?? "password")
    : signedOut(call);
  return isRefusal(session) ? session : { ...answer, headers: { ...answer.headers, ...session.headers } };
}

const askedOf = (call: Call, position: string, fields: Asked["fields"]): Asked => ({
  ctx: call.ctx,
  signedIn: call.signedIn,
  client: clientOfCall(call),
  path: call.path,
  search: new URLSearchParams(call.search),
  lastEventId: call.headers.get("last-event-id"),
  position,
  fields,
  idempotency: null,
  isForm: call.method !== "GET",
  cookies: new Bun.CookieMap(call.headers.get("cookie") ?? ""),
  gone: call.left,
});

/** The fields of a form as a browser sends it. Each has one value. */
function readFields({ body, headers }: Call): Asked["fields"] | Refusal {
  if (!FORM_TYPE.test(headers.get("content-type") ?? "")) {
    return refuseField("Content-Type", "must be application/x-www-form-urlencoded");
  }
  const fields: Record<string, string> = Object.create(null);
  for (const [name, value] of new URLSearchParams(String(body ?? ""))) {
    if (name in fields) return refuseField(name, "is there twice");
    fields[name] = value;
  }
  return fields;
}

/** The key that the form was made with, so that a form that is sent twice does one thing. */
function idempotencyOf(call: Call, sent: string | undefined, fields: Asked["fields"]): Idempotency | Refusal {
  const key = readIdempotencyKey(sent ?? null);
  return isRefusal(key) ? key : idempotencyOfRequest(key, callerOf(call), call.method, call.path, fields);
}

function answerOf(shown: Shown): Answer {
  if (shown.kind === "file") return { ...text(shown.type, shown.body), headers: FOR_GOOD };
  if (shown.kind === "worker") return { ...text(shown.type, shown.body), headers: OF_WORKER };
  if (shown.kind === "stream") {
    return { status: 200, body: shown.body, contentType: "text/event-stream", headers: AT_ONCE };
  }
  if (shown.kind === "download") {
    const disposition = `attachment; filename="${shown.name}"`;
    return {
      ...{ status: 200, body: shown.body, contentType: shown.type },
      headers: { "Content-Disposition": disposition, "Cache-Control": "no-store" },
    };
  }
  if (shown.kind === "page") return { ...html(shown.body, ALLOWED, true), status: shown.status };
  return { status: 303, body: null, headers: { Location: shown.to, ...shown.headers } };
}
