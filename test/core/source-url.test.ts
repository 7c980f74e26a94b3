import { expect, test } from "bun:test";
import { checkSourceUrl, URL_LENGTH_MAX } from "../../src/core/source-url.ts";

const LONG = "http://x.example/".padEnd(2_048, "a");
const GOOD: readonly string[] = [
  "http://x.example",
  "https://x.example/",
  "HTTPS://X.EXAMPLE/Path?q=1#f",
  "https://x.example:8443/a%20b",
  "http://127.0.0.1:3000/",
  "http://[::1]/",
  "https://münchen.example/straße",
  "https://x.example/user:pass@not-credentials",
  "https://x.example/?u=a@b",
  LONG,
];
for (const url of GOOD) {
  test(`takes ${url.slice(0, 60)}`, () => expect(checkSourceUrl(url)).toBeNull());
}

const NOT_HTTP = "must be an http or https URL";
const HIDDEN = "must be an http or https URL, without control or invisible characters";
const CREDENTIALS = "must not carry credentials";
const BAD: readonly (readonly [url: string, problem: string])[] = [
  ["", NOT_HTTP],
  ["x.example", NOT_HTTP],
  ["//x.example", NOT_HTTP],
  ["/path", NOT_HTTP],
  ["http:x.example", NOT_HTTP],
  ["http:/x.example", NOT_HTTP],
  ["http:\\\\x.example", NOT_HTTP],
  ["http://", NOT_HTTP],
  ["http://?q", NOT_HTTP],
  ["http://x.example:99999/", NOT_HTTP],
  ["http://[::1/", NOT_HTTP],
  ["http://exa<mple/", NOT_HTTP],
  ...["ftp", "file", "data", "s3", "blob", "javascript", "ws", "httpx"].map(
    (scheme) => [`${scheme}://x.example/`, NOT_HTTP] as const,
  ),
  ["data:application/json,{}", NOT_HTTP],
  ["file:///etc/passwd", NOT_HTTP],
  // The parser would remove these: the URL that is fetched would not be the one that was written.
  [" http://x.example", NOT_HTTP],
  ["http://x.example ", NOT_HTTP],
  ["http://x.example/\n", HIDDEN],
  ["ht\ntp://x.example/", HIDDEN],
  ["http://x.ex\tample/", HIDDEN],
  ["http://x.example/\r\nHost: y", HIDDEN],
  ["http://x.example/\u0000", HIDDEN],
  ["http://x.example/\u007f", HIDDEN],
  ["http://x.example/\u202efdp.exe", HIDDEN],
  ["http://x.ex\u200bample/", HIDDEN],
  ["http://user:password@x.example/", CREDENTIALS],
  ["http://user@x.example/", CREDENTIALS],
  ["http://:password@x.example/", CREDENTIALS],
  ["https://x.example\\@y.example@z.example/".replace("\\", "%5C"), CREDENTIALS],
  [`${LONG}a`, "must be at most 2048 characters"],
  ["x".repeat(256 * 1024), "must be at most 2048 characters"],
];
for (const [url, problem] of BAD) {
  test(`refuses ${JSON.stringify(url.slice(0, 60))}: ${problem}`, () =>
    expect(checkSourceUrl(url)).toBe(problem));
}

test("the longest URL is of 2,048 characters", () => expect(URL_LENGTH_MAX).toBe(2_048));
