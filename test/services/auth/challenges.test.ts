import { expect, test } from "bun:test";
import {
  type Asker,
  type Ceremony,
  createPendingChallenges,
  takeAnswered,
} from "../../../src/services/auth/passkeys/challenges.ts";

/** Challenges that wait in memory. Their number is limited, and each is good for one answer. */

const ADA: Asker = { kind: "person", id: "usr_ada" };
const BOB: Asker = { kind: "person", id: "usr_bob" };
const SOMEWHERE: Asker = { kind: "address", id: "192.0.2.1" };
const SIGN_IN: Ceremony = { kind: "signIn" };

test("a challenge is given back once, before its 120 seconds are over", () => {
  const pending = createPendingChallenges();
  for (const challenge of ["a", "b"]) pending.add(challenge, ADA, SIGN_IN, 0);
  expect(pending.take("a", 119_999)).toEqual(SIGN_IN);
  expect(pending.take("a", 0)).toBeNull();
  expect(pending.take("b", 120_000)).toBeNull();
  expect(pending.take("b", 0)).toBeNull();
  expect(pending.take("never", 0)).toBeNull();
});

test("a person has ten at a time, an address a hundred; beyond that its own oldest is dropped", () => {
  for (const [asker, max] of [
    [ADA, 10],
    [SOMEWHERE, 100],
  ] as const) {
    const pending = createPendingChallenges();
    pending.add("bob", BOB, SIGN_IN, 0);
    for (let count = 0; count <= max; count++) pending.add(`own-${count}`, asker, SIGN_IN, 0);
    expect(pending.take("own-0", 0)).toBeNull();
    for (let count = 1; count <= max; count++) expect(pending.take(`own-${count}`, 0)).toEqual(SIGN_IN);
    expect(pending.take("bob", 0)).toEqual(SIGN_IN);
  }
});

test("all together have a limit, and a flood of addresses does not push out those of people", () => {
  const pending = createPendingChallenges(3);
  pending.add("ada", ADA, SIGN_IN, 0);
  for (let count = 0; count < 5; count++) {
    pending.add(`${count}`, { kind: "address", id: `192.0.2.${count}` }, SIGN_IN, 0);
  }
  expect([0, 1, 2, 3, 4].map((count) => pending.take(`${count}`, 0))).toEqual([
    null,
    null,
    SIGN_IN,
    SIGN_IN,
    SIGN_IN,
  ]);
  expect(pending.take("ada", 0)).toEqual(SIGN_IN);
});

test("expired challenges are dropped before those that still wait", () => {
  const pending = createPendingChallenges(2);
  pending.add("old", ADA, SIGN_IN, 0);
  pending.add("waiting", BOB, SIGN_IN, 60_000);
  pending.add("new", ADA, SIGN_IN, 120_000);
  expect(pending.take("waiting", 120_000)).toEqual(SIGN_IN);
  expect(pending.take("new", 120_000)).toEqual(SIGN_IN);
});

test("an answer without valid client data names no challenge", () => {
  const pending = createPendingChallenges();
  const clientData = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64url");
  pending.add("x", ADA, SIGN_IN, 0);
  for (const text of ["", "AAAA", clientData(null), clientData("x"), clientData({ challenge: 1 })]) {
    expect(takeAnswered(pending, text, 0)).toBeNull();
  }
  expect(takeAnswered(pending, clientData({ challenge: "x" }), 0)).toEqual({
    challenge: "x",
    ceremony: SIGN_IN,
  });
});
