/** A source and seller that asks for no payment. Its argument is a port. */

const BYTES = 10 * 1024 * 1024;
const SMALL_OBJECTS = Buffer.from(`[${"{},".repeat(BYTES / 3 - 2)}{}]`);
/** Text that no other answer has. */
let answers = 0;

Bun.serve({
  port: Number(process.argv[2]),
  hostname: "127.0.0.1",
  fetch(request) {
    const { pathname } = new URL(request.url);
    if (pathname === "/objects.json") return new Response(SMALL_OBJECTS);
    // Each of these bytes is six in JSON.
    if (pathname === "/control") return new Response(Buffer.alloc(BYTES, 1));
    if (pathname === "/text") return new Response(Buffer.alloc(BYTES, `text ${answers++} `));
    return new Response("a source");
  },
});
