import { describe, expect, test } from "bun:test";
import {
  ACCESS,
  actorOf,
  type Caller,
  type KeyCaller,
  MODES,
  type PersonCaller,
  ROLES,
  type Role,
  refuseAccess,
  roleIsAtLeast,
  SYSTEM,
} from "../../src/core/roles.ts";

const KEY: KeyCaller = {
  kind: "key",
  keyId: "key_1",
  agentId: "agt_1",
  organisationId: "org_1",
  mode: "sandbox",
};
const person = (role: Role): PersonCaller => ({
  kind: "person",
  userId: "usr_1",
  role,
  organisationId: "org_1",
  mode: "live",
  signInHash: "hash",
  owesPasskey: false,
});

test("the roles are four, lowest first, and the modes two", () => {
  expect([...ROLES]).toEqual(["viewer", "operator", "admin", "owner"]);
  expect([...MODES]).toEqual(["sandbox", "live"]);
});

describe("roleIsAtLeast", () => {
  // A row for each role: which minimum it meets, from viewer to owner.
  const TABLE: Readonly<Record<Role, readonly boolean[]>> = {
    viewer: [true, false, false, false],
    operator: [true, true, false, false],
    admin: [true, true, true, false],
    owner: [true, true, true, true],
  };
  for (const role of ROLES) {
    test(role, () => expect(ROLES.map((minimum) => roleIsAtLeast(role, minimum))).toEqual([...TABLE[role]]));
  }
});

describe("who may do what", () => {
  const CALLERS: readonly (readonly [name: string, caller: Caller])[] = [
    ["key", KEY],
    ...ROLES.map((role) => [role, person(role)] as const),
  ];
  const PEOPLE_ONLY = "user_session_required";
  const TOO_LOW = "insufficient_role";
  type Answers = readonly [key: string | null, ...people: (string | null)[]];

  /** For the key, then the viewer, the operator, the admin and the owner: null where they may, else why not. */
  const TABLE: Readonly<Record<keyof typeof ACCESS, Answers>> = {
    openWarrant: [null, TOO_LOW, null, null, null],
    verifyWarrant: [null, TOO_LOW, null, null, null],
    readWarrants: [null, null, null, null, null],
    settleWarrant: [PEOPLE_ONLY, TOO_LOW, null, null, null],
    resolveEscalation: [PEOPLE_ONLY, TOO_LOW, null, null, null],
    readConsole: [PEOPLE_ONLY, null, null, null, null],
    keepOwnSignIn: [PEOPLE_ONLY, null, null, null, null],
    endOwnSignIn: [PEOPLE_ONLY, null, null, null, null],
    registerPasskey: [PEOPLE_ONLY, null, null, null, null],
    pauseAgent: [PEOPLE_ONLY, TOO_LOW, null, null, null],
    administer: [PEOPLE_ONLY, TOO_LOW, TOO_LOW, null, null],
    ownOrganisation: [PEOPLE_ONLY, TOO_LOW, TOO_LOW, TOO_LOW, null],
  };
  for (const verb of Object.keys(TABLE) as (keyof typeof ACCESS)[]) {
    for (const [index, [name, caller]] of CALLERS.entries()) {
      const code = TABLE[verb][index] ?? null;
      test(`${verb}, ${name}: ${code ?? "may"}`, () => {
        expect(refuseAccess(caller, ACCESS[verb])?.refused ?? null).toBe(code as never);
      });
    }
  }

  test("a person who owes a passkey may see and end the sign-in, and register a passkey, and nothing else", () => {
    const allowed = Object.entries(ACCESS)
      .filter(([, access]) => refuseAccess({ ...person("owner"), owesPasskey: true }, access) === null)
      .map(([verb]) => verb);
    expect(allowed).toEqual(["endOwnSignIn", "registerPasskey"]);
  });

  test("a key is refused where keys are not allowed, however low the role", () => {
    for (const role of ROLES) {
      expect(refuseAccess(KEY, { role, keys: false })?.refused).toBe("user_session_required");
      expect(refuseAccess(KEY, { role, keys: true })).toBeNull();
    }
  });

  test("a refusal of a person names both roles", () => {
    const refusal = refuseAccess(person("viewer"), { role: "admin", keys: true });
    expect(refusal?.message).toMatch(/admin.*viewer/);
  });
});

test("the trace names the key by its own id, a person by theirs, and the system by none", () => {
  expect(actorOf(KEY)).toEqual({ kind: "agent", id: "key_1" });
  expect(actorOf(person("operator"))).toEqual({ kind: "user", id: "usr_1" });
  expect(SYSTEM).toEqual({ kind: "system", id: null });
});
