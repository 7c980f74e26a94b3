import type { TSchema } from "@sinclair/typebox";
import { SESSION_COOKIE } from "./caller.ts";
import { noBody } from "./models.ts";
import { namedSchemas, type OpenApiSchema, openApiSchema } from "./openapi-schema.ts";
import { responseModels } from "./response-models.ts";
import { type RouteRule, ruleOf } from "./route.ts";
import { WORKER_HEADER } from "./worker.ts";

/** A route as Elysia lists it. */
export type Route = {
  readonly method: string;
  readonly path: string;
  readonly hooks: { readonly body?: unknown; readonly query?: unknown; readonly detail?: object };
};

/** What `route()` put into the detail for readers. */
type Detail = {
  readonly summary: string;
  readonly tags: readonly string[];
  readonly responses: Readonly<Record<string, { readonly description: string }>>;
};

/** What each operation answers when it succeeds: a named model, a media type of text, or nothing. */
const ANSWERS: Readonly<
  Record<
    string,
    keyof typeof responseModels | "text/html" | "text/css" | "text/plain" | "text/javascript" | null
  >
> = {
  "POST /v1/warrants": "Warrant",
  "GET /v1/warrants": "WarrantList",
  "GET /v1/warrants/{id}": "Warrant",
  "GET /v1/warrants/{id}/trace": "TraceList",
  "POST /v1/warrants/{id}/verify": "Warrant",
  "POST /v1/warrants/{id}/release": "Warrant",
  "POST /v1/warrants/{id}/partial": "Warrant",
  "POST /v1/warrants/{id}/refund": "Warrant",
  "POST /v1/x402/pay": "Payment",
  "GET /v1/console/verifiers": "VerifierList",
  "GET /v1/console/agents": "AgentList",
  "GET /v1/console/policies": "PolicyList",
  "GET /v1/console/keys": "ApiKeyList",
  "GET /v1/console/users": "UserList",
  "GET /v1/console/audit-log": "AuditLog",
  "GET /v1/console/escalations": "EscalationList",
  "GET /v1/console/webhooks": "WebhookList",
  "POST /v1/console/escalations/{id}/resolve": "ResolvedEscalation",
  "POST /auth/session": "AuthSession",
  "GET /auth/session": "AuthSession",
  "DELETE /auth/session": null,
  "DELETE /auth/sessions": null,
  "POST /auth/password": null,
  "POST /auth/password/reset": null,
  "POST /auth/passkeys/options": "PasskeyCreationOptions",
  "POST /auth/passkeys": "Passkey",
  "GET /auth/passkeys": "PasskeyList",
  "DELETE /auth/passkeys/{id}": null,
  "POST /auth/passkey/sign-in/options": "PasskeyRequestOptions",
  "POST /auth/passkey/sign-in": "AuthSession",
  "POST /auth/passkey/challenge": "PasskeyRequestOptions",
  "POST /auth/passkey/assertion": "PasskeyApproval",
  "GET /t/{id}": "Receipt",
  "POST /bench/run": "CheckResult",
  "GET /.well-known/jwks.json": "JsonWebKeySet",
  "POST /internal/jobs/webhooks": "DeliveryJob",
  "GET /healthz": "Health",
  "GET /readyz": "Readiness",
  "GET /metrics": "text/plain",
  "GET /account": "text/html",
  "GET /reset-password": "text/html",
  "GET /console/account.js": "text/javascript",
  "GET /console/account.css": "text/css",
  "GET /docs": "text/html",
  "GET /docs/api-reference/errors": "text/html",
  "GET /docs/style.css": "text/css",
};

const COMMON_HEADERS = {
  "X-Request-Id": { $ref: "#/components/headers/X-Request-Id" },
  "RateLimit-Limit": { $ref: "#/components/headers/RateLimit-Limit" },
  "RateLimit-Remaining": { $ref: "#/components/headers/RateLimit-Remaining" },
  "RateLimit-Reset": { $ref: "#/components/headers/RateLimit-Reset" },
};
const integerHeader = (description: string) => ({ description, schema: { type: "integer" } });

/** The OpenAPI 3.0 document of the given routes, made from the routes themselves. */
export function describeRoutes(routes: readonly Route[]): object {
  const paths: Record<string, Record<string, object>> = {};
  for (const route of routes) {
    const path = pathOf(route);
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: operationOf(route) };
  }
  return {
    openapi: "3.0.3",
    info: {
      title: "Holdfast",
      version: "0.1",
      description: "Holds money against a promise, checks the deliverable itself, and settles by policy.",
      license: { name: "MIT", url: "https://spdx.org/licenses/MIT.html" },
    },
    servers: [{ url: "/" }],
    tags: [...new Set(routes.flatMap((route) => detailOf(route).tags))].map((name) => ({ name })),
    paths,
    components: {
      schemas: namedSchemas,
      responses: {
        Error: {
          description: "A refusal: nothing moved. Branch on `code`.",
          headers: COMMON_HEADERS,
          content: { "application/json": { schema: { $ref: "#/components/schemas/Error" } } },
        },
      },
      headers: {
        "X-Request-Id": { description: "The caller's own, or the service's.", schema: { type: "string" } },
        "RateLimit-Limit": integerHeader("The bucket's budget in a window of 60 seconds."),
        "RateLimit-Remaining": integerHeader("What is left of it."),
        "RateLimit-Reset": integerHeader("Seconds until it is whole again."),
      },
      securitySchemes: {
        apiKey: { type: "http", scheme: "bearer", description: "An agent's API key." },
        session: { type: "apiKey", in: "cookie", name: SESSION_COOKIE, description: "A signed-in person." },
        worker: { type: "apiKey", in: "header", name: WORKER_HEADER, description: "The operator's worker." },
      },
    },
  };
}

/** The operations in short. */
export const endpointsOf = (routes: readonly Route[]) =>
  routes.map((route) => ({
    method: route.method,
    path: pathOf(route),
    summary: detailOf(route).summary,
  }));

const pathOf = ({ path }: Route): string => path.replace(/:(\w+)/g, "{$1}");

function detailOf({ method, path, hooks }: Route): Detail {
  if (!hooks.detail) throw new Error(`${method} ${path} has no detail`);
  return hooks.detail as Detail;
}

function operationOf(route: Route): object {
  const { summary, tags } = detailOf(route);
  const rule = ruleOf(detailOf(route));
  const { access, idempotent } = rule;
  const isSettlement = idempotent && access?.keys === false;
  const body = route.hooks.body as TSchema | undefined;
  const parameters = parametersOf(route, idempotent, isSettlement);
  return {
    operationId: operationIdOf(route),
    summary,
    tags,
    security: securityOf(rule),
    ...(parameters.length > 0 && { parameters }),
    // An empty object is accepted where no body is asked for; there is nothing to describe in it.
    ...(body &&
      body !== noBody && {
        requestBody: { required: true, content: { "application/json": { schema: openApiSchema(body) } } },
      }),
    responses: responsesOf(route),
  };
}

/** `POST /v1/warrants/:id/verify` → postV1WarrantsIdVerify. */
const operationIdOf = ({ method, path }: Route): string =>
  [method.toLowerCase(), ...path.split(/[^A-Za-z0-9]+/).filter((word) => word !== "")]
    .map((word, index) => (index === 0 ? word : word.charAt(0).toUpperCase() + word.slice(1)))
    .join("");

function securityOf({ access, worker }: RouteRule): readonly object[] {
  if (worker) return [{ worker: [] }];
  return access === null ? [] : [...(access.keys ? [{ apiKey: [] }] : []), { session: [] }];
}

function parametersOf(route: Route, idempotent: boolean, isSettlement: boolean): readonly object[] {
  const query = route.hooks.query as OpenApiSchema | undefined;
  const inPath = [...route.path.matchAll(/:(\w+)/g)].map(([, name]) => ({
    name,
    in: "path",
    required: true,
    schema: { type: "string" },
  }));
  const inQuery = Object.entries(query?.properties ?? {}).map(([name, schema]) => ({
    name,
    in: "query",
    required: query?.required?.includes(name) ?? false,
    schema: openApiSchema(schema),
  }));
  return [
    ...inPath,
    ...inQuery,
    ...(idempotent ? headersOfMoves(inPath.length > 0) : []),
    ...(isSettlement ? [PASSKEY_HEADER] : []),
  ];
}

/** Of the moves that only a person makes. */
const PASSKEY_HEADER = {
  name: "Service-Passkey",
  in: "header",
  required: false,
  description: "Above the passkey threshold: the token of POST /auth/passkey/assertion for this decision.",
  schema: { type: "string" },
};

/** The headers of the routes that move money; only a warrant that exists has a version to match. */
const headersOfMoves = (hasVersion: boolean): readonly object[] => [
  {
    name: "Idempotency-Key",
    in: "header",
    required: true,
    description: "One key per intent, the same on every retry.",
    schema: { type: "string", minLength: 1, maxLength: 255 },
  },
  ...(hasVersion
    ? [
        {
          name: "If-Match",
          in: "header",
          required: false,
          description: 'The warrant\'s version as its ETag gave it, such as `"3"`.',
          schema: { type: "string" },
        },
      ]
    : []),
];

function responsesOf(route: Route): object {
  const operation = `${route.method} ${pathOf(route)}`;
  const answer = ANSWERS[operation];
  const error = { "application/json": { schema: { $ref: "#/components/schemas/Error" } } };
  const described = Object.entries(detailOf(route).responses).map(([status, { description }]) => {
    // Whoever asks whether the service is ready is answered the same whether it is or not.
    const isRefused = Number(status) >= 400 && answer !== "Readiness";
    const content = isRefused ? error : contentOf(answer);
    return [status, { description, headers: COMMON_HEADERS, ...(content && { content }) }];
  });
  return { ...Object.fromEntries(described), default: { $ref: "#/components/responses/Error" } };
}

function contentOf(answer: (typeof ANSWERS)[string] | undefined): object | null {
  if (answer === null) return null;
  if (answer === undefined) return { "application/json": { schema: { type: "object" } } };
  return answer in responseModels
    ? { "application/json": { schema: { $ref: `#/components/schemas/${answer}` } } }
    : { [answer]: { schema: { type: "string" } } };
}
