import { describe, expect, test } from "bun:test";
import { formatAddCheckpoint, parseAddCheckpoint } from "../../src/core/witness.ts";
import { parseLogs, parseWitnesses } from "../../src/core/witness-settings.ts";

/** The example of C2SP, tlog-witness, "add-checkpoint". */
const PROOF = [
  "PlRNCrwHpqhGrupue0L7gxbjbMiKA9temvuZZDDpkaw=",
  "jrJZDmY8Y7SyJE0MWLpLozkIVMSMZcD5kvuKxPC3swk=",
  "5+pKlUdi2LeF/BcMHBn+Ku6yhPGNCswZZD1X/6QgPd8=",
  "/6WVhPs2CwSsb5rYBH5cjHV/wSmA79abXAwhXw3Kj/0=",
];
const NOTE = `example.com/behind-the-sofa
20852163
CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=

— example.com/behind-the-sofa Az3grlgtzPICa5OS8npVmf1Myq/5IZniMp+ZJurmRDeOoRDe4URYN7u5/Zhcyv2q1gGzGku9nTo+zyWE+xeMcTOAYQ8=
— example.com/behind-the-sofa opLqBQsREYCgu6xQkYQwJr9fo45a62DN9EdmHXnZdXNqlcVGlCum2Wks+49/V6267UEjw6QUXTS5Rovnzv++qbSzm9Q=
`;
const EXAMPLE = `old 20852014\n${PROOF.join("\n")}\n\n${NOTE}`;

const parsed = (body: string) => {
  const found = parseAddCheckpoint(body);
  if ("problem" in found) throw new Error(found.problem);
  return found;
};
const problemOf = (body: string): string => {
  const found = parseAddCheckpoint(body);
  return "problem" in found ? found.problem : "none";
};

describe("what a log asks of a witness", () => {
  test("the example of the specification is read, and written the same", () => {
    const { oldSize, proof, note, checkpoint } = parsed(EXAMPLE);
    expect(oldSize).toBe(20_852_014);
    expect(proof.map((hash) => Buffer.from(hash).toString("base64"))).toEqual(PROOF);
    expect([checkpoint.origin, checkpoint.size]).toEqual(["example.com/behind-the-sofa", 20_852_163]);
    expect(note.lines).toHaveLength(2);
    expect(formatAddCheckpoint(oldSize, proof, NOTE)).toBe(EXAMPLE);
  });

  test("a first request has no proof", () => {
    expect(parsed(`old 0\n\n${NOTE}`)).toMatchObject({ oldSize: 0, proof: [] });
  });

  const refused: readonly (readonly [string, string, string])[] = [
    ["nothing", "", "must be a line such as old"],
    ["no old size", `${PROOF[0]}\n\n${NOTE}`, "must be a line such as old"],
    ["a leading zero", EXAMPLE.replace("old 2", "old 02"), "must be a line such as old"],
    ["two spaces", EXAMPLE.replace("old ", "old  "), "must be a line such as old"],
    ["no empty line", EXAMPLE.replace("\n\n", "\n"), "must have 32 bytes in base64"],
    ["64 lines of proof", `old 1\n${`${PROOF[0]}\n`.repeat(64)}\n${NOTE}`, "must have at most 63 lines"],
    ["a hash of 31 bytes", EXAMPLE.replace(PROOF[1]!, btoa("a".repeat(31))), "must have 32 bytes"],
    ["a hash that is not base64", EXAMPLE.replace(PROOF[1]!, "?"), "must have 32 bytes"],
    ["no note", `old 1\n\n`, "must end with a checkpoint"],
    ["a note that is no checkpoint", EXAMPLE.replace("\n20852163\n", "\n"), "must end with a checkpoint"],
    [
      "an old size above that of the checkpoint",
      EXAMPLE.replace("old 20852014", "old 20852164"),
      "must have an old size of at most",
    ],
  ];
  for (const [name, body, problem] of refused) {
    test(`${name} is refused`, () => expect(problemOf(body)).toStartWith(problem));
  }

  test("63 lines of proof are read", () => {
    expect(parsed(`old 1\n${`${PROOF[0]}\n`.repeat(63)}\n${NOTE}`).proof).toHaveLength(63);
  });
});

/** github.com/transparency-dev/formats, note_cosigv1_test.go: a log's key, and a witness's. */
const LOG = "TEST+7997405c+AQcC+FTVKf0jlTdHDY3rbevmnKxxPjigCXlVtGe6RIr6";
const WITNESS = "remora.n621.de+da77ade7+BOvN63jn/bLvkieywe8R6UYAtVtNbZpXh34x7onlmtw2";
/** golang.org/x/mod/sumdb/note */
const PETER = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW";

const logs = (text: string) => {
  const found = parseLogs(text);
  if ("problem" in found) return found.problem;
  return found.map(({ origin, keys }) => [origin, ...keys.map(({ name }) => name)]);
};
const witnesses = (text: string) => {
  const found = parseWitnesses(text);
  return "problem" in found ? found.problem : found.map(({ key, url }) => [key.name, url]);
};

describe("the logs that the operator names", () => {
  test("are of the origin that the key names, or of the one before it", () => {
    expect(logs(`${LOG}, ${PETER}`)).toEqual([
      ["TEST", "TEST"],
      ["PeterNeumann", "PeterNeumann"],
    ]);
    expect(logs(`example.com/log=1=${LOG}`)).toEqual([["example.com/log=1", "TEST"]]);
  });

  test("may have several keys", () => {
    expect(logs(`log=${LOG},log=${PETER}`)).toEqual([["log", "TEST", "PeterNeumann"]]);
  });

  test("are refused with what is wrong", () => {
    expect(logs("TEST")).toStartWith("must be keys of logs, with commas between; TEST is not a key as");
    expect(logs(LOG.replace("79", "97"))).toContain("is not a key as");
    expect(logs(WITNESS)).toEndWith("is the key of a witness");
    const many = Array.from({ length: 101 }, (_, index) => `log${index}=${LOG}`).join(",");
    expect(logs(many)).toBe("must be at most 100 logs");
  });
});

describe("the witnesses that the operator names", () => {
  test("are keys with URLs", () => {
    expect(witnesses(`${WITNESS}=https://w.example/witness//`)).toEqual([
      ["remora.n621.de", "https://w.example/witness"],
    ]);
  });

  test("are refused with what is wrong", () => {
    expect(witnesses(WITNESS)).toStartWith("must be keys of witnesses and their URLs");
    expect(witnesses(`${WITNESS.replace("da", "ad")}=https://w.example`)).toContain("is not a key as");
    expect(witnesses(`${LOG}=https://w.example`)).toEndWith("has the key of a log");
    expect(witnesses(`${WITNESS}=https://w.example?a=1`)).toContain("without ? and #");
    expect(witnesses(`${WITNESS}=https://u:p@w.example`)).toContain("http or https URL");
    expect(witnesses(`${WITNESS}=https://w.example,${WITNESS}=https://v.example`)).toEndWith("named twice");
  });
});
