import { afterEach, beforeEach, expect, spyOn, test } from "bun:test";
import * as fs from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { KEY_FILES, keyFile, readKeyFile } from "../../src/platform/key-files.ts";

let folder: string;
beforeEach(() => {
  folder = fs.mkdtempSync(join(tmpdir(), "holdfast-keys-"));
});
afterEach(() => fs.rmSync(folder, { recursive: true, force: true }));

test("a key that is made is on disk, and so is its name, before the call returns", () => {
  const calls: string[] = [];
  const { linkSync, fsyncSync, fstatSync } = fs;
  const spies = [
    spyOn(fs, "linkSync").mockImplementation((from, to) => {
      linkSync(from, to);
      calls.push("name");
    }),
    spyOn(fs, "fsyncSync").mockImplementation((descriptor) => {
      fsyncSync(descriptor);
      calls.push(fstatSync(descriptor).isDirectory() ? "sync folder" : "sync file");
    }),
  ];
  try {
    expect(keyFile(folder, KEY_FILES.master, () => "key")).toBe("key");
  } finally {
    for (const spy of spies) spy.mockRestore();
  }
  expect(calls).toEqual(["sync file", "name", "sync folder"]);
});

test("reading a key makes none", () => {
  expect(readKeyFile(folder, KEY_FILES.master)).toBeNull();
  expect(fs.readdirSync(folder)).toEqual([]);
});
