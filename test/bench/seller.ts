/** A source that always has the same small deliverable. */
const deliverable = JSON.stringify({ ok: true, items: [1, 2, 3] });
Bun.serve({
  port: Number(process.argv[2]),
  hostname: "127.0.0.1",
  fetch: () => new Response(deliverable, { headers: { "Content-Type": "application/json" } }),
});
