import type { TSchema } from "@sinclair/typebox";
import { errorForm } from "../resources/error.ts";
import { noBody } from "../resources/input.ts";
import { createSchemas, type DescribedSchema } from "../resources/json-schema.ts";
import { readinessForm } from "../resources/operation.ts";
import { SESSION_COOKIE } from "./caller.ts";
import { MACHINES } from "./machines.ts";
import { type Answers, answeredAsText, answersOf, type RouteRule, ruleOf } from "./route.ts";

type Describe = ReturnType<typeof createSchemas>["describe"];

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

const COMMON_HEADERS = {
  "X-Request-Id": { $ref: "#/components/headers/X-Request-Id" },
  "RateLimit-Limit": { $ref: "#/components/headers/RateLimit-Limit" },
  "RateLimit-Remaining": { $ref: "#/components/headers/RateLimit-Remaining" },
  "RateLimit-Reset": { $ref: "#/components/headers/RateLimit-Reset" },
};
const integerHeader = (description: string) => ({ description, schema: { type: "integer" } });

/** The OpenAPI 3.1 document of the given routes, made from the routes themselves. */
export function describeRoutes(routes: readonly Route[]): object {
  const paths: Record<string, Record<string, object>> = {};
  const { describe, named } = createSchemas();
  const error = describe(errorForm());
  for (const route of routes) {
    const path = pathOf(route);
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: operationOf(route, describe) };
  }
  return {
    openapi: "3.1.1",
    info: {
      title: "Holdfast",
      version: "0.1",
      description: "Holds money against a promise, checks the deliverable itself, and settles by policy.",
      license: { name: "MIT", identifier: "MIT" },
    },
    servers: [{ url: "/" }],
    tags: [...new Set(routes.flatMap((route) => detailOf(route).tags))].map((name) => ({ name })),
    paths,
    components: {
      schemas: named,
      responses: {
        Error: {
          description: "A refusal: nothing moved. Branch on `code`.",
          headers: COMMON_HEADERS,
          content: { "application/json": { schema: error } },
        },
      },
      headers: {
        "X-Request-Id": { description: "The caller's own, or the service's.", schema: { type: "string" } },
        "RateLimit-Limit": integerHeader("The bucket's budget in a window of 60 seconds."),
        "RateLimit-Remaining": integerHeader("What is left of it."),
        "RateLimit-Reset": integerHeader("Seconds until the whole budget is available again."),
      },
      securitySchemes: {
        apiKey: { type: "http", scheme: "bearer", description: "An agent's API key." },
        session: { type: "apiKey", in: "cookie", name: SESSION_COOKIE, description: "A signed-in person." },
        ...Object.fromEntries(
          Object.entries(MACHINES).map(([machine, { header, about }]) => [
            machine,
            { type: "apiKey", in: "header", name: header, description: about },
          ]),
        ),
      },
    },
  };
}

const pathOf = ({ path }: Route): string => path.replace(/:(\w+)/g, "{$1}");

function detailOf({ method, path, hooks }: Route): Detail {
  if (!hooks.detail) throw new Error(`${method} ${path} has no detail`);
  return hooks.detail as Detail;
}

function operationOf(route: Route, describe: Describe): object {
  const { summary, tags } = detailOf(route);
  const rule = ruleOf(detailOf(route));
  const { access, idempotent, takesText } = rule;
  const isSettlement = idempotent && access?.keys === false;
  const body = route.hooks.body as TSchema | undefined;
  const parameters = parametersOf(route, idempotent, isSettlement, describe);
  return {
    operationId: operationIdOf(route),
    summary,
    tags,
    security: securityOf(rule),
    ...(parameters.length > 0 && { parameters }),
    // A route without a body accepts an empty object, which is not worth describing.
    ...(body &&
      body !== noBody && {
        requestBody: {
          required: true,
          content: { [takesText ? "text/plain" : "application/json"]: { schema: describe(body) } },
        },
      }),
    responses: responsesOf(route, describe),
  };
}

/** `POST /v1/warrants/:id/verify` → postV1WarrantsIdVerify. */
const operationIdOf = ({ method, path }: Route): string =>
  [method.toLowerCase(), ...path.split(/[^A-Za-z0-9]+/).filter((word) => word !== "")]
    .map((word, index) => (index === 0 ? word : word.charAt(0).toUpperCase() + word.slice(1)))
    .join("");

function securityOf({ access, machine }: RouteRule): readonly object[] {
  if (machine) return [{ [machine]: [] }];
  return access === null ? [] : [...(access.keys ? [{ apiKey: [] }] : []), { session: [] }];
}

function parametersOf(
  route: Route,
  idempotent: boolean,
  isSettlement: boolean,
  describe: Describe,
): readonly object[] {
  const query = route.hooks.query as DescribedSchema | undefined;
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
    schema: describe(schema),
  }));
  return [
    ...inPath,
    ...inQuery,
    ...(idempotent ? headersOfMoves(inPath.length > 0) : []),
    ...(isSettlement ? [PASSKEY_HEADER] : []),
  ];
}

/** The header of the moves that only a person can make. */
const PASSKEY_HEADER = {
  name: "Service-Passkey",
  in: "header",
  required: false,
  description: "Above the passkey threshold: the token of POST /auth/passkey/assertion for this decision.",
  schema: { type: "string" },
};

/** The headers of the routes that move money. Only a route of an existing warrant has a version to match. */
const headersOfMoves = (hasVersion: boolean): readonly object[] => [
  {
    name: "Idempotency-Key",
    in: "header",
    required: true,
    description: "One for each thing you want done, the same on every retry.",
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

function responsesOf(route: Route, describe: Describe): object {
  const detail = detailOf(route);
  const answers = answersOf(detail);
  const described = Object.entries(detail.responses).map(([status, { description }]) => {
    // The readiness check answers with the same form whether or not the service is ready.
    const isError = Number(status) >= 400 && answers !== readinessForm;
    const isRefused = isError && !answeredAsText(detail).includes(status);
    const content = contentOf(isRefused ? errorForm : answers, describe);
    return [status, { description, headers: COMMON_HEADERS, ...(content && { content }) }];
  });
  return { ...Object.fromEntries(described), default: { $ref: "#/components/responses/Error" } };
}

function contentOf(answers: Answers, describe: Describe): object | null {
  if (answers === null) return null;
  return typeof answers === "function"
    ? { "application/json": { schema: describe(answers()) } }
    : { [answers]: { schema: answers.startsWith("text/") ? { type: "string" } : {} } };
}
