/** @jsxImportSource hono/jsx */
import { isRefusal, type Refusal, refuse, statusOf } from "../core/errors.ts";
import type { SignedIn } from "../services/auth/callers.ts";
import { readSurroundings } from "../services/console/surroundings.ts";
import { Alone, documentOf } from "./frame.tsx";
import type { InstanceState } from "./instance-state.ts";
import { refuseOtherMode } from "./mode-field.ts";
import { OWED_PASSKEY } from "./pages/owed-passkey.tsx";
import type { Asked, Download, Page, Redirect, Route, Visit } from "./route.ts";
import { consoleRoutes } from "./routes.ts";
import { createSubmissions, type Submissions } from "./submissions.ts";

/** The console: finds the page of a path, does what is the same for all pages, and writes the document. */

type Shown =
  | { readonly kind: "page"; readonly status: number; readonly body: string }
  | { readonly kind: "file"; readonly type: string; readonly body: string }
  | { readonly kind: "worker"; readonly type: string; readonly body: string }
  | { readonly kind: "stream"; readonly body: ReadableStream<Uint8Array> }
  | ({ readonly kind: "download" } & Download)
  | ({ readonly kind: "redirect" } & Redirect);

type Params = Readonly<Record<string, string>>;

/** @param isDevelopment whether it runs from the source: then there is a page with all components */
export function createSite(isDevelopment: boolean, instance: InstanceState) {
  const routes = consoleRoutes(isDevelopment, instance);
  const submissions = createSubmissions();
  return {
    find(method: string, path: string) {
      const found = findRoute(routes, method, path) ?? notFound(method, path);
      if (found === null) return null;
      const { route, params } = found;
      return {
        path: route.path,
        access: route.access,
        params,
        answer: (asked: Asked) => answerOf(route, params, asked, submissions),
        refuse: shownRefusal,
      };
    },
  };
}

function findRoute(routes: readonly Route[], method: string, path: string) {
  const parts = path.split("/");
  for (const route of routes) {
    const params = route.method === method ? paramsOf(route.path.split("/"), parts) : null;
    if (params !== null) return { route, params };
  }
  return null;
}

/** The parameters of a path that fits the pattern; null where it does not fit. */
function paramsOf(pattern: readonly string[], parts: readonly string[]): Params | null {
  if (pattern.length !== parts.length) return null;
  const params: Record<string, string> = {};
  for (const [index, wanted] of pattern.entries()) {
    const part = parts[index] ?? "";
    if (!wanted.startsWith(":")) {
      if (wanted !== part) return null;
    } else if (/^[A-Za-z0-9_-]{1,64}$/.test(part)) params[wanted.slice(1)] = part;
    else return null;
  }
  return params;
}

/** Somebody who mistypes a path sees a page, not JSON. */
function notFound(method: string, path: string): { readonly route: Route; readonly params: Params } | null {
  if (method !== "GET" || !path.startsWith("/console/")) return null;
  const answer = async () => refuse("route_not_found", `There is no page ${path}.`);
  return { route: { method: "GET", kind: "open", path: "/console/*", access: null, answer }, params: {} };
}

async function answerOf(
  route: Route,
  params: Params,
  asked: Asked,
  submissions: Submissions,
): Promise<Shown | Refusal> {
  if (route.kind === "file" || route.kind === "worker") {
    return { kind: route.kind, type: route.type, body: route.body };
  }
  if (route.kind === "open") return shown(asked, await route.answer(asked), null);
  const { signedIn, idempotency } = asked;
  if (signedIn === null) throw new Error("a page for people without a person");
  if (route.kind === "stream") {
    const body = route.open({ ...asked, signedIn });
    return isRefusal(body) ? body : { kind: "stream", body };
  }
  const visit = await visitOf(asked, signedIn, params);
  if (route.kind === "download") {
    const file = await route.open(visit);
    return isRefusal(file) ? file : { kind: "download", ...file };
  }
  if (route.kind === "page") return shown(asked, await route.show(visit), visit);
  if (idempotency === null) throw new Error("a form without an Idempotency-Key");
  const otherMode = refuseOtherMode(visit.caller, asked.fields);
  if (otherMode) return otherMode;
  if (route.kind === "trial") return shown(asked, await route.show(visit), visit);
  const answer = await submissions.once(
    visit.caller.signInHash,
    { ...idempotency, now: asked.ctx.now() },
    () => route.send({ ...visit, idempotency }),
    { isDone, hasSecret },
    asked.ctx.shared,
  );
  return shown(asked, answer, visit);
}

/** A form that is shown again did nothing, and may be sent again. */
const isDone = (answer: Page | Redirect | Refusal): boolean =>
  !isRefusal(answer) && ("to" in answer || (answer.status ?? 200) < 400);

const hasSecret = (answer: Page | Redirect | Refusal): boolean =>
  !isRefusal(answer) && "hasSecret" in answer && answer.hasSecret === true;

async function visitOf(asked: Asked, signedIn: SignedIn, params: Params): Promise<Visit> {
  const { caller, user } = signedIn;
  asked.ctx.live.follow(caller);
  return { ...asked, params, signedIn, caller, user, around: await readSurroundings(asked.ctx, caller) };
}

function shown(asked: Asked, answer: Page | Redirect | Refusal, visit: Visit | null): Shown | Refusal {
  if (isRefusal(answer)) return answer;
  if ("to" in answer) return { kind: "redirect", ...answer };
  return { kind: "page", status: answer.status ?? 200, body: documentOf(asked, answer, visit) };
}

/**
 * A refusal as a page: what was refused, why, and where to go on. Who is not signed in signs in, and who owes a passkey proves it,
 * and comes back.
 */
function shownRefusal(asked: Asked, refusal: Refusal): Shown {
  const isStranger = refusal.refused === "not_authenticated" && asked.signedIn === null;
  const back = asked.search.size > 0 ? `${asked.path}?${asked.search}` : asked.path;
  if (isStranger && !asked.isForm)
    return { kind: "redirect", to: `/console/sign-in?next=${encodeURIComponent(back)}` };
  if (refusal.refused === "second_factor_required" && !asked.isForm)
    return { kind: "redirect", to: `${OWED_PASSKEY}?next=${encodeURIComponent(back)}` };
  const status = statusOf(refusal.refused);
  const title = TITLES[status] ?? "That was refused";
  const content = (
    <Alone title={title}>
      <p>{refusal.message}</p>
      <p class="actions">
        {refusal.refused === "second_factor_required" ? (
          <a class="button primary" href={OWED_PASSKEY}>
            Use your passkey
          </a>
        ) : null}
        <a class="button" href={isStranger ? "/console/sign-in" : "/console"}>
          {isStranger ? "Sign in" : "Back to the overview"}
        </a>
      </p>
      <p class="hint">
        <a href={`/docs/api-reference/errors#${refusal.refused}`}>{refusal.refused}</a>
      </p>
    </Alone>
  );
  return { kind: "page", status, body: documentOf(asked, { title, section: null, content }, null) };
}

const TITLES: Readonly<Record<number, string>> = {
  401: "Sign in first",
  403: "You may not do that",
  404: "There is nothing here",
  409: "It has changed meanwhile",
  429: "Too many requests",
  500: "Something went wrong",
};
