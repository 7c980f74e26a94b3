import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type Service, startTestServer, startTestShell } from "../support/server.ts";

/** The pages of the console. They load nothing from other hosts, and may not. */

let service: Service;
beforeAll(async () => {
  service = await startTestServer({ BASE_URL: "https://holdfast.example/" });
});
afterAll(() => service?.close());

describe.each(["/account", "/reset-password"])("%s", (path) => {
  test("has no script or style of its own, and may load ours only", async () => {
    const { status, headers, text } = await service.get(path);
    expect([status, headers.get("content-type")]).toEqual([200, "text/html; charset=utf-8"]);
    const policy = (headers.get("content-security-policy") ?? "").split("; ").sort();
    expect(policy).toEqual([
      "base-uri 'none'",
      "connect-src 'self'",
      "default-src 'none'",
      "form-action 'none'",
      "frame-ancestors 'none'",
      "script-src 'self'",
      "style-src 'self'",
    ]);
    expect(headers.get("referrer-policy")).toBe("no-referrer");
    expect(text).toStartWith("<!doctype html>");
    expect(text).not.toMatch(/<script>|<style|\sstyle=|\son[a-z]+=/);
    expect(text).toContain(`<link rel="canonical" href="https://holdfast.example${path}">`);
  });

  test("has no broken link, and every field has a label", async () => {
    const { text } = await service.get(path);
    const links = [...text.matchAll(/(?:href|src)="(\/[^"]*)"/g)].map(([, link = ""]) => link);
    expect(links).toContain("/console/account.js");
    // The console leads on to its sign-in.
    const status = (link: string) => (link === "/console" ? 303 : 200);
    for (const link of links) expect([link, (await service.get(link)).status]).toEqual([link, status(link)]);
    const fields = [...text.matchAll(/<(?:input|select)\b/g)].length;
    expect([...text.matchAll(/<label>[^<]+<(?:input|select)\b/g)]).toHaveLength(fields);
  });
});

test("the script and the stylesheet have their media types", async () => {
  for (const [path, type] of [
    ["/console/account.js", "text/javascript; charset=utf-8"],
    ["/console/account.css", "text/css; charset=utf-8"],
  ] as const) {
    const { headers } = await service.get(path);
    expect([headers.get("content-type"), headers.get("x-content-type-options")]).toEqual([type, "nosniff"]);
  }
});

test("a base URL is text in the page, not markup", async () => {
  const { consolePages } = await import("../../src/console/pages.ts");
  const { body } = consolePages('https://holdfast.example/"><script>')["/account"]!;
  expect(body).not.toContain("<script>");
});

test("without pages their routes are 404", async () => {
  const bare = startTestShell();
  try {
    const reply = await bare.get("/account");
    expect([reply.status, reply.code]).toEqual([404, "route_not_found"]);
  } finally {
    await bare.close();
  }
});
