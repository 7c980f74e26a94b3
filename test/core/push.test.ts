import { expect, test } from "bun:test";
import { defaultPushContact } from "../../src/core/push.ts";

test("push services are told the address that mail comes from, else the site, else an address of the host", () => {
  expect(defaultPushContact("https://pay.example/", "ops@example.org")).toBe("mailto:ops@example.org");
  expect(defaultPushContact("https://pay.example/", null)).toBe("https://pay.example");
  expect(defaultPushContact("http://localhost:8080", null)).toBe("mailto:holdfast@localhost");
});
