import { expect, test } from "bun:test";
import { refuse } from "../../../src/core/errors.ts";
import { createStartLinks } from "../../../src/services/auth/start-links.ts";

const MINUTE_MS = 60_000;
const SET_UP = { kind: "set-up", userId: null } as const;

function start() {
  const clock = { now: 5 };
  const links = createStartLinks(() => clock.now);
  const use = (token: string, kind: "set-up" | "sign-in" = "set-up") =>
    links.use(kind, token, async ({ userId }) => ({ userId }));
  return { clock, links, use };
}

test("a link is good once, for 30 minutes by a clock that never jumps", async () => {
  const { clock, links, use } = start();
  links.add(SET_UP, "a");
  clock.now += 30 * MINUTE_MS - 1;
  expect(await use("b")).toBeNull();
  expect(await use("a", "sign-in")).toBeNull();
  expect(await use("a")).toEqual({ userId: null });
  expect(await use("a")).toBeNull();
  links.add(SET_UP, "a");
  clock.now += 30 * MINUTE_MS;
  expect(await use("a")).toBeNull();
});

test("a newer one voids the one before, of its kind alone", async () => {
  const { links, use } = start();
  links.add(SET_UP, "a");
  links.add({ kind: "sign-in", userId: "usr_1" }, "b");
  links.add(SET_UP, "c");
  expect(await use("a")).toBeNull();
  expect(await use("b", "sign-in")).toEqual({ userId: "usr_1" });
  expect(await use("c")).toEqual({ userId: null });
});

test("it stays good where the work is refused or fails, and nobody else uses it meanwhile", async () => {
  const { links, use } = start();
  links.add(SET_UP, "a");
  const gate = Promise.withResolvers<void>();
  const refused = links.use("set-up", "a", async () => {
    await gate.promise;
    return refuse("validation_failed", "no");
  });
  expect(await use("a")).toBeNull();
  gate.resolve();
  expect(await refused).toMatchObject({ refused: "validation_failed" });
  await expect(links.use("set-up", "a", () => Promise.reject(new Error("a full disk")))).rejects.toThrow(
    "a full disk",
  );
  expect(await use("a")).toEqual({ userId: null });
});

test("a link that was made while another was used is not replaced by it", async () => {
  const { links, use } = start();
  links.add(SET_UP, "a");
  await links.use("set-up", "a", async () => {
    links.add(SET_UP, "b");
    return refuse("validation_failed", "no");
  });
  expect(await use("a")).toBeNull();
  expect(await use("b")).toEqual({ userId: null });
});
