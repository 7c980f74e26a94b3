import { Elysia } from "elysia";
import { openBody } from "../../src/resources/warrant.ts";

/**
 * A bare Elysia that validates the body of an open and sends it back. It shows what routing and validation
 * cost alone. Its argument is a port.
 */
const [, , port] = process.argv;
new Elysia({ aot: true, normalize: false })
  .post("/v1/warrants", ({ body }) => body, { body: openBody })
  .listen({ port: Number(port), hostname: "127.0.0.1" });
