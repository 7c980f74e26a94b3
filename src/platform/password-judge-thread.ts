import { parentPort } from "node:worker_threads";
import { ZxcvbnFactory } from "@zxcvbn-ts/core";
import * as common from "@zxcvbn-ts/language-common";
import * as english from "@zxcvbn-ts/language-en";
import breached from "./breached-passwords.txt" with { type: "text" };
import type { JudgeQuestion, Weakness } from "./password-judge.ts";

/** The whole program of the thread that judges passwords: see `password-judge.ts`. */

/** Of 0 to 4. From 3 on, somebody who has the hash needs more than 10^8 guesses. */
const SCORE_MIN = 3;
/**
 * How much of a password is judged, and how many ways to read `4` as `a`. The library's own 256 and 100 take up to
 * 6 s for one password; these take 0.1 s at most, and judge the passwords that were tried just the same.
 */
const JUDGED_LENGTH_MAX = 64;
const SUBSTITUTIONS_MAX = 10;

const { warnings } = english.translations;
const zxcvbn = new ZxcvbnFactory({
  dictionary: { ...common.dictionary, ...english.dictionary },
  graphs: common.adjacencyGraphs,
  maxLength: JUDGED_LENGTH_MAX,
  l33tMaxSubstitutions: SUBSTITUTIONS_MAX,
  translations: {
    ...english.translations,
    warnings: {
      ...warnings,
      userInputs: "It contains your e-mail, your name or your organisation's name.",
    },
  },
});

/** The 10,000 most common stolen passwords of twelve characters or more: the library's dictionaries have few of that length. */
const BREACHED = new Set(breached.split("\n"));

/** The library's words are fixed sentences: no part of the password is in them. */
function weaknessOf({ password, known }: JudgeQuestion): Weakness {
  const { score, feedback } = zxcvbn.check(password, [...known]);
  if (score >= SCORE_MIN)
    return BREACHED.has(password.toLowerCase())
      ? "must be harder to guess. It is in lists of stolen passwords."
      : null;
  return ["must be harder to guess.", feedback.warning ?? "", ...feedback.suggestions]
    .filter(Boolean)
    .join(" ");
}

parentPort?.on("message", (question: JudgeQuestion) => parentPort?.postMessage(weaknessOf(question)));
