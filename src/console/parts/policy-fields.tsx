/** @jsxImportSource hono/jsx */
import { REASON_CODES } from "../../core/clauses/reason-codes.ts";
import type { Refusal } from "../../core/errors.ts";
import { OUTCOMES } from "../../core/policy.ts";
import type { Draft, DraftBand } from "../../services/console/policy-input.ts";
import { outcomeWords } from "./bands.tsx";
import { Field, type Problems } from "./forms.tsx";

/** The fields of a policy's rules. */

export const TRY = "/console/policies/try";

/** The form is judged while one types. Its answer is laid over it, so that the field in which one types keeps its text. */
export const ASKS_SERVER = {
  "hx-post": TRY,
  "hx-target": "#draft",
  "hx-select": "#draft",
  "hx-swap": "outerMorph",
  "hx-sync": "this:replace",
};

/** A refusal beside its field, with its code and where that is explained. */
const Problem = ({
  name,
  problems,
  refusal,
}: {
  name: string;
  problems: Problems;
  refusal: Refusal | null;
}) =>
  problems[name] === undefined ? null : (
    <p class="problem" id={`${name}-problem`}>
      {problems[name]}{" "}
      {refusal?.refused.startsWith("policy_") ? (
        <a href={`/docs/api-reference/errors#${refusal.refused}`}>{refusal.refused}</a>
      ) : null}
    </p>
  );

type BandsProps = { draft: Draft; problems: Problems; refusal: Refusal | null };

export const Bands = ({ draft, problems, refusal }: BandsProps) => (
  <fieldset>
    <legend>Bands</legend>
    <Problem name="bands" problems={problems} refusal={refusal} />
    {draft.bands.map((band, at) => (
      <Band band={band} at={at} problems={problems} refusal={refusal} />
    ))}
    <p>
      <button type="submit" name="do" value="add" {...ASKS_SERVER}>
        Add a band
      </button>
    </p>
  </fieldset>
);

type BandProps = { band: DraftBand; at: number; problems: Problems; refusal: Refusal | null };

const OUTCOME_CHOICES = OUTCOMES.map((value) => ({
  value,
  words: value === "partial_release" ? "Release a part" : outcomeWords(value, 0),
}));

const Band = ({ band, at, problems, refusal }: BandProps) => {
  const names = ["minScore", "outcome", "share", "label"].map((name) => `bands.${at}.${name}`);
  const [minScore = "", outcome = "", share = "", label = ""] = names;
  const input = (name: string, attributes: Readonly<Record<string, string>>) => ({
    ...{ id: name, name, autocomplete: "off", ...attributes },
    "aria-invalid": problems[name] ? ("true" as const) : undefined,
    "aria-describedby": problems[name] ? `${name}-problem` : undefined,
  });
  return (
    <div class="band-row" id={`band-${at}`}>
      <div class="field">
        <label for={minScore}>From score</label>
        <input {...input(minScore, { inputmode: "decimal", placeholder: "0 to 1" })} value={band.minScore} />
      </div>
      <div class="field">
        <label for={outcome}>Then</label>
        <select {...input(outcome, {})}>
          {OUTCOME_CHOICES.map(({ value, words }) => (
            <option value={value} selected={value === band.outcome}>
              {words}
            </option>
          ))}
        </select>
      </div>
      <div class="field band-share">
        <label for={share}>Share, %</label>
        <input {...input(share, { inputmode: "decimal" })} value={band.share} />
      </div>
      <div class="field band-label">
        <label for={label}>Label</label>
        <input {...input(label, { maxlength: "200", placeholder: "May stay empty" })} value={band.label} />
      </div>
      <button
        type="submit"
        name="do"
        value={`remove.${at}`}
        aria-label={`Remove the band from ${band.minScore || "an empty score"}`}
        {...ASKS_SERVER}
      >
        Remove
      </button>
      <div class="band-problems">
        {names.map((name) => (
          <Problem name={name} problems={problems} refusal={refusal} />
        ))}
      </div>
    </div>
  );
};

/** What decides whatever the score is, and how much at most. */
export const Besides = ({ draft, problems }: { draft: Draft; problems: Problems }) => (
  <>
    <Field
      name="max_amount"
      label="Largest warrant, in USDC"
      value={draft.maxAmount}
      problem={problems.max_amount}
      hint="A larger one, or one of another asset, is refused when it is opened. Empty for no limit."
      attributes={{ inputmode: "decimal", autocomplete: "off" }}
    />
    <details open={draft.always.size > 0}>
      <summary>Reasons that decide by themselves</summary>
      <div class="always">
        {REASON_CODES.map((code) => (
          <div class="field">
            <label for={`always.${code}`}>{code.replaceAll("_", " ")}</label>
            <select id={`always.${code}`} name={`always.${code}`}>
              {[
                ["", "The score decides"],
                ["escalate", "Always escalate"],
                ["refund", "Always refund"],
              ].map(([value, words]) => (
                <option value={value} selected={(draft.always.get(code) ?? "") === value}>
                  {words}
                </option>
              ))}
            </select>
          </div>
        ))}
      </div>
    </details>
  </>
);
