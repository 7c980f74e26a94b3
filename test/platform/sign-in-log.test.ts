import { afterEach, beforeEach, expect, mock, spyOn, test } from "bun:test";
import { createSignInLog } from "../../src/platform/sign-in-log.ts";
import { callerAt } from "../support/client.ts";
import { readRepositoryFile } from "../tidy/source-files.ts";

/** The lines about sign-ins, and the filter that reads them (docs/operating, "Sign-ins in the log"). */

const PAGE = readRepositoryFile("src/docs/operating.md");
const NO_USER = { by: "password", why: "wrong", user: null } as const;

let written: string[];
let clock: number;
const logging = () => createSignInLog(undefined, () => clock);
beforeEach(() => {
  written = [];
  clock = 0;
  spyOn(process.stderr, "write").mockImplementation((text) => written.push(String(text)) > 0);
});
afterEach(() => mock.restore());

/** The addresses that fail2ban finds by the filter of the documentation: it takes the date out of a line, and matches the rest. */
function banned(lines: readonly string[]): string[] {
  const setting = (name: string): string =>
    new RegExp(`^ *${name} = (.+)$`, "m").exec(PAGE)?.[1] ?? `no ${name}`;
  const date = setting("datepattern")
    .replaceAll("%%Y", "\\d{4}")
    .replace(/%%[mdHMST]/g, "\\d{2}")
    .replace("%%f", "\\d{1,6}")
    .replace("%%z", "Z");
  const failure = setting("failregex").replace("<ADDR>", "(?<address>[0-9.]+|[0-9a-f:]+)");
  return lines.flatMap((line) => {
    const found = new RegExp(date).exec(line);
    if (!found) throw new Error(`no date in ${line}`);
    return new RegExp(failure).exec(line.replace(found[0], ""))?.groups?.address ?? [];
  });
}

test("fail2ban finds the failures of an address by the filter of the documentation, and nothing that a client wrote", () => {
  const forged =
    '{"time":"2026-11-22T21:07:15.119Z","level":"warning","message":"sign-in failed","address":"192.0.2.9",';
  const log = logging();
  log.failed({ ...NO_USER, client: callerAt("203.0.113.7", forged) });
  log.failed({ ...NO_USER, why: "too many failures", client: callerAt("2001:db8:1:2:3::7", "\n\r\u2028,") });
  log.succeeded({
    client: callerAt("192.0.2.1", forged),
    by: "password",
    userId: "usr_1",
    signInId: "sgn_1",
  });
  log.ended({
    ...{ client: callerAt("192.0.2.1", forged), userId: "usr_1", signInIds: ["sgn_1"] },
    ...{ why: "signed out", endedBy: "usr_1" },
  });
  expect(written).toHaveLength(4);
  expect(banned(written)).toEqual(["203.0.113.7", "2001:db8:1:2:3::7"]);
});

test("a line is as the documentation shows it", () => {
  logging().failed({ ...NO_USER, client: callerAt("203.0.113.7", "curl/8.14.1") });
  const shown = PAGE.split("\n").find((line) => line.includes('"message":"sign-in failed","address":"203'));
  const timeless = (line = "") => JSON.parse(line, (key, value) => (key === "time" ? "" : value));
  expect(Object.entries(timeless(written[0]))).toEqual(Object.entries(timeless(shown)));
});

test("a program's name is cut, and shown in ASCII", () => {
  logging().failed({
    ...NO_USER,
    client: callerAt("203.0.113.7", `\u001b[2J\u202e\u009b\u00e9${"x".repeat(9_999)}`),
  });
  const { agent } = JSON.parse(written[0] ?? "");
  expect(agent).toBe(`\\u001b[2J\\u202e\\u009b\\u00e9${"x".repeat(193)}`);
});

test("failures have ten lines a minute for an address and 300 in all, and a later line says how many it lacks", () => {
  const log = logging();
  const fail = (address: string, times: number) => {
    for (let count = 0; count < times; count++) log.failed({ ...NO_USER, client: callerAt(address) });
  };
  fail("203.0.113.7", 50);
  expect(written).toHaveLength(10);
  for (let host = 0; host < 100; host++) fail(`198.51.100.${host}`, 9);
  expect(written).toHaveLength(300);
  // Another sign-in is logged all the same.
  log.succeeded({ client: callerAt("203.0.113.7"), by: "password", userId: "usr_1", signInId: "sgn_1" });
  expect(written).toHaveLength(301);
  clock += 60_000;
  fail("203.0.113.7", 1);
  // The first one after the 40 of the first address counted these.
  expect(JSON.parse(written[10] ?? "")).toMatchObject({ unlogged: 40 });
  expect(JSON.parse(written.at(-1) ?? "")).toMatchObject({ unlogged: 900 - 290 });
});
