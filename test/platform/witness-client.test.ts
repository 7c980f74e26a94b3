import { afterAll, beforeAll, expect, test } from "bun:test";
import { createWitnessClient } from "../../src/platform/witness-client.ts";

/** What a witness may do to whoever asks it. */

let server: Bun.Server<undefined>;
let seen: string[];
beforeAll(() => {
  seen = [];
  server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request) {
      const { pathname } = new URL(request.url);
      seen.push(`${request.method} ${pathname} ${await request.text()}`);
      if (pathname === "/endless")
        return new Response(new ReadableStream({ pull: (c) => c.enqueue(new Uint8Array(65_536).fill(97)) }));
      if (pathname === "/silent") return new Promise<Response>(() => {});
      if (pathname === "/elsewhere") return Response.redirect("/add-checkpoint", 302);
      return new Response("\ufeff5\n", { status: 409 });
    },
  });
});
afterAll(() => server.stop(true));

const client = (allowNetworks: readonly string[], timeoutMs = 5_000) =>
  createWitnessClient({ allowNetworks, timeoutMs });
const at = (path: string) => `http://127.0.0.1:${server.port}${path}`;

test("an offer is posted, and the answer is what came", async () => {
  const ask = client(["127.0.0.0/8"]);
  expect(await ask(at("/add-checkpoint"), "old 0\n")).toEqual({ status: 409, text: "\ufeff5\n" });
  expect(await ask(at("/checkpoint"))).toMatchObject({ status: 409 });
  expect(seen).toEqual(["POST /add-checkpoint old 0\n", "GET /checkpoint "]);
});

test("only public addresses are asked, unless the operator allows others; those of machines' credentials never", async () => {
  expect(await client([])(at("/add-checkpoint"))).toEqual({ failed: "source_blocked" });
  const metadata = "http://169.254.169.254/latest";
  expect(await client(["0.0.0.0/0"])(metadata)).toEqual({ failed: "source_blocked" });
  const own = createWitnessClient({
    allowNetworks: ["127.0.0.0/8"],
    timeoutMs: 1_000,
    ownListeners: () => [{ address: "127.0.0.1", port: server.port ?? 0 }],
  });
  expect(await own(at("/add-checkpoint"))).toEqual({ failed: "source_blocked" });
});

test("no redirect is followed, no answer is read without end, and none is waited for without end", async () => {
  const ask = client(["127.0.0.0/8"], 300);
  expect(await ask(at("/elsewhere"))).toMatchObject({ status: 302 });
  const endless = await client(["127.0.0.0/8"])(at("/endless"));
  expect("text" in endless && endless.text.length).toBe(160 * 1024);
  expect(await ask(at("/silent"))).toEqual({ failed: "source_timeout" });
  expect(await ask("http://127.0.0.1:1/")).toEqual({ failed: "source_unreachable" });
});
