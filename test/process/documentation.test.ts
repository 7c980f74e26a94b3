/** Runs what the documentation has people type, page by page, in one shell, and compares what it prints. */
import { expect } from "bun:test";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { MARKDOWN_PAGES } from "../../src/docs/contents.ts";
import { onlyEmbedded } from "../support/only-embedded.ts";

const { afterAll, beforeAll, describe, test } = onlyEmbedded(import.meta.path);

const MAIN = resolve(import.meta.dir, "../../src/main.ts");
const DOCS = resolve(import.meta.dir, "../../src/docs");
/** Two minutes on two idle cores. */
const RUN_MS = 600_000;

type Block = {
  readonly name: string;
  /** The words after the fence: `sh run`, and `fails` or `last`. */
  readonly tags: readonly string[];
  readonly code: string;
  /** The lines that it must print, in this order, with … for what differs. */
  readonly prints: readonly string[];
};

const FENCES = /^```([^\n]*)\n([\s\S]*?)^```$/gm;

/** The blocks of a page that are run, each with the text that follows it. */
function blocksOf(page: string): Block[] {
  const fences = [...readFileSync(join(DOCS, `${page}.md`), "utf8").matchAll(FENCES)];
  return fences.flatMap(([, info = "", code = ""], index) => {
    const tags = info.split(" ");
    if (!tags.includes("run")) return [];
    const [, nextInfo, next = ""] = fences[index + 1] ?? [];
    const prints = nextInfo === "text" ? next.split("\n").filter((line) => line.trim() !== "") : [];
    const first = code.split("\n").find((line) => line.includes("holdfast") || line.includes("curl")) ?? code;
    return [{ name: `${page}: ${first.trim().slice(0, 90)}`, tags, code, prints }];
  });
}

/** The front page has a request too, by the key of an agent that nobody has limited. */
const A_KEY = `AGENT=$(holdfast agents create --organisation $ORG --mode sandbox --name reader --json | grep -o 'agt_[0-9A-Z]*' | head -n 1)
KEY=$(holdfast keys create --agent $AGENT --json | grep -o 'hf_test_[0-9A-Za-z]*')`;
const front = blocksOf("../../README").map((block) => ({ ...block, code: `(${A_KEY}\n${block.code})\n` }));
const all = [...MARKDOWN_PAGES.flatMap(blocksOf), ...front];
const blocks = [
  ...all.filter(({ tags }) => !tags.includes("last")),
  ...all.filter(({ tags }) => tags.includes("last")),
];

const folder = mkdtempSync(join(tmpdir(), "holdfast-documentation-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Free ports in the place of those that the pages name, and a folder of our own in the place of /tmp. */
const NAMED_PORTS = [8080, 8081, 9090, 9091, 9092];
const ports = new Map(
  NAMED_PORTS.map((named) => {
    const server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response() });
    const free = server.port!;
    return [named, { free, server }] as const;
  }),
);

const here = (text: string): string =>
  [...ports].reduce(
    (changed, [named, { free }]) => changed.replaceAll(new RegExp(`\\b${named}\\b`, "g"), String(free)),
    text.replaceAll("/tmp/holdfast-", `${folder}/holdfast-`),
  );

/** A server that a block has started needs a moment; a person takes longer to read on. */
const listening = (code: string): string =>
  NAMED_PORTS.filter((named) => code.includes(String(named)) && / &$/m.test(code))
    .map(
      (named) =>
        `timeout 60 bash -c 'until (: < /dev/tcp/127.0.0.1/${named}) 2>/dev/null; do sleep 0.1; done'\n`,
    )
    .join("");

const fileOf = (index: number, what: string): string => join(folder, `block-${index}.${what}`);

beforeAll(async () => {
  const bin = join(folder, "bin");
  mkdirSync(bin);
  writeFileSync(join(bin, "holdfast"), `#!/bin/sh\nexec '${process.execPath}' '${MAIN}' "$@"\n`);
  chmodSync(join(bin, "holdfast"), 0o755);
  const script = blocks.map(({ code }, index) => {
    const [out, status] = [fileOf(index, "out"), fileOf(index, "status")];
    return `{\n${here(code)}} > '${out}' 2>&1\necho $? > '${status}'\n${here(listening(code))}`;
  });
  for (const { server } of ports.values()) await server.stop(true);
  const file = join(folder, "all.sh");
  // Whatever a page leaves running ends with the shell.
  writeFileSync(file, `trap 'kill $(jobs -p) 2>/dev/null; wait' EXIT\n${script.join("\n")}`);
  const shell = Bun.spawn(["bash", file], {
    cwd: folder,
    env: {
      PATH: `${bin}:${process.env.PATH}`,
      HOME: folder,
      HOLDFAST_PORT: "0",
      HOLDFAST_RATE_WRITE: "100000",
      HOLDFAST_RATE_BENCH: "100000",
    },
    stdout: "inherit",
    stderr: "inherit",
  });
  await shell.exited;
}, RUN_MS);

const isFine = (line: string, expected: string): boolean =>
  new RegExp(here(expected).trim().split("…").map(RegExp.escape).join(".*")).test(line);

describe("what the pages say to type", () => {
  test("is there", () => {
    expect(blocks.length).toBeGreaterThan(60);
  });

  blocks.forEach(({ name, tags, prints }, index) => {
    test(`${name} [${index}]`, () => {
      expect(existsSync(fileOf(index, "status"))).toBe(true);
      const printed = readFileSync(fileOf(index, "out"), "utf8");
      const fails = readFileSync(fileOf(index, "status"), "utf8") !== "0\n";
      expect(fails, printed).toBe(tags.includes("fails"));
      let rest = printed.split("\n");
      for (const expected of prints) {
        const at = rest.findIndex((line) => isFine(line, expected));
        expect(at, `${expected}\nis not in\n${rest.join("\n")}`).toBeGreaterThanOrEqual(0);
        rest = rest.slice(at + 1);
      }
    });
  });
});
