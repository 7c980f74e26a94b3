import { expect, test } from "bun:test";
import { createVault } from "../../src/platform/vault.ts";

const keyOf = (byte: number) => new Uint8Array(32).fill(byte);

test("a MAC is the same wherever the master key is, and another for any other key, name or text", () => {
  const mac = createVault(keyOf(1)).mac("text", "name");
  expect(createVault(keyOf(1)).mac("text", "name")).toEqual(mac);
  expect(mac).toHaveLength(32);
  for (const other of [
    createVault(keyOf(2)).mac("text", "name"),
    createVault(keyOf(1)).mac("text", "other"),
    createVault(keyOf(1)).mac("other", "name"),
    // The name does not run into the text.
    createVault(keyOf(1)).mac("etext", "nam"),
  ])
    expect(other).not.toEqual(mac);
});
