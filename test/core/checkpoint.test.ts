import { describe, expect, test } from "bun:test";
import { formatCheckpoint, parseCheckpoint } from "../../src/core/checkpoint.ts";

/** The example of C2SP, tlog-checkpoint. */
const EXAMPLE = "example.com/behind-the-sofa\n20852163\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n";
const ROOT = "CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=";

describe("a checkpoint", () => {
  test("is the origin, the size and the root", () => {
    expect(parseCheckpoint(EXAMPLE)).toEqual({
      origin: "example.com/behind-the-sofa",
      size: 20_852_163,
      root: new Uint8Array(Buffer.from(ROOT, "base64")),
      extensions: [],
    });
  });

  test("extension lines are kept", () => {
    expect(parseCheckpoint(`${EXAMPLE}6086d1a9\nWaxing gibbous\n`)?.extensions).toEqual([
      "6086d1a9",
      "Waxing gibbous",
    ]);
  });

  for (const text of [EXAMPLE, `${EXAMPLE}more\n`, `Moon Log\n0\n${ROOT}\n`]) {
    test(`${JSON.stringify(text)} is written as it was read`, () => {
      const parsed = parseCheckpoint(text);
      expect(parsed && formatCheckpoint(parsed)).toBe(text);
    });
  }

  const refused: readonly (readonly [string, string])[] = [
    ["nothing", ""],
    ["two lines", "Head\n9944\n"],
    ["an empty origin", `\n9944\n${ROOT}\n`],
    ["no newline after the root", `Log\n123\n${ROOT}`],
    ["a size that is no number", `Log\nbananas\n${ROOT}\n`],
    ["a negative size", `Log\n-34\n${ROOT}\n`],
    ["a size too large", `Log\n3438945738945739845734895735\n${ROOT}\n`],
    ["a size that no number holds exactly", `Log\n9007199254740992\n${ROOT}\n`],
    ["a size with a leading zero", `Log\n0123\n${ROOT}\n`],
    ["a size with a sign", `Log\n+123\n${ROOT}\n`],
    ["a root that is not base64", "Log\n123\nThisIsn'tBase64\n"],
    ["a root of another length", "Log\n123\nYmFuYW5hcw==\n"],
    ["an empty extension line", `${EXAMPLE}\n`],
    ["an empty line among the extensions", `${EXAMPLE}a\n\nb\n`],
  ];
  for (const [name, text] of refused) {
    test(`${name} is none`, () => expect(parseCheckpoint(text)).toBeNull());
  }
});
