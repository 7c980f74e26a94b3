import { DELIVERABLE } from "./opening.ts";

/** A source that always gives the same deliverable. Its argument is a port. */
Bun.serve({
  port: Number(process.argv[2]),
  hostname: "127.0.0.1",
  fetch: () => new Response(DELIVERABLE, { headers: { "Content-Type": "application/json" } }),
});
