import { expect, test } from "bun:test";
import { startTestShell } from "../support/server.ts";

const HEADER = "strict-transport-security";

/** Requests whose answers are made in every way there is: a page, a file, JSON, refusals of each step, no body, a fault. */
const REQUESTS = [
  ["GET", "/docs"],
  ["GET", "/docs/style.css"],
  ["GET", "/openapi.json"],
  ["HEAD", "/healthz"],
  ["GET", "/no-such-route"],
  ["GET", "/t/wrt_none"],
  ["GET", "/v1/warrants"],
  ["POST", "/v1/warrants"],
  ["POST", "/auth/session"],
  ["GET", "/.well-known/jwks.json"],
  ["GET", "/v1/warrants/wrt_fault"],
] as const;

for (const [baseUrl, expected] of [
  ["https://holdfast.example", "max-age=31536000"],
  ["HTTPS://holdfast.example", "max-age=31536000"],
  ["http://holdfast.example", null],
  ["http://localhost:8080", null],
] as const) {
  test(`a service at ${baseUrl} says ${expected ?? "nothing"} of https in every answer`, async () => {
    const service = startTestShell({ baseUrl, onFault: () => {} });
    try {
      const { people } = await service.organisation();
      const read = service.ctx.store.read;
      for (const [method, path] of REQUESTS) {
        const broken = path.endsWith("fault");
        if (broken) service.ctx.store.read = () => Promise.reject(new Error("no disk"));

        const { status, headers: answered } = await service.send(
          method,
          path,
          undefined,
          broken ? { as: people.owner.as } : {},
        );
        service.ctx.store.read = read;
        expect([path, answered.get(HEADER)]).toEqual([path, expected]);
        if (broken) expect(status).toBe(500);
      }
    } finally {
      await service.close();
    }
  });
}
