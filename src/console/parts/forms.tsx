/** @jsxImportSource hono/jsx */
import type { PropsWithChildren } from "hono/jsx";
import type { Mode } from "../../core/roles.ts";
import { newToken } from "../../services/auth/tokens.ts";
import type { Context } from "../../services/context.ts";
import { MODE_FIELD } from "../mode-field.ts";
import { Notice } from "./blocks.tsx";
import type { Markup } from "./markup.ts";

/** Forms and their fields. */

/** Who a form is made for. */
type Maker = {
  readonly ctx: Pick<Context, "randomByte">;
  readonly caller: { readonly mode: Mode };
};

type FormProps = PropsWithChildren<{
  readonly by: Maker;
  readonly action: string;
  readonly class?: string;
  readonly label?: string;
  /** What is wrong with the whole of it; what is wrong in a field is said beside the field. */
  readonly problem?: string | undefined;
  readonly attributes?: Readonly<Record<string, string>>;
}>;

/** A form, with the Idempotency-Key that it is sent with however often, and the mode that it was made in. */
export const Form = ({ by, action, children, label, problem, attributes, ...own }: FormProps) => (
  <form method="post" action={action} class={own.class ?? "form"} aria-label={label} {...attributes}>
    <input type="hidden" name="_key" value={newToken(by.ctx)} />
    <input type="hidden" name={MODE_FIELD} value={by.caller.mode} />
    {problem ? <Notice kind="problem">{problem}</Notice> : null}
    {children}
  </form>
);

/** What is wrong in a field, by the field's name. */
export type Problems = Readonly<Record<string, string>>;

export type FieldProps = {
  readonly name: string;
  readonly label: string;
  readonly value?: string | undefined;
  readonly type?: string;
  readonly hint?: Markup;
  readonly problem?: string | undefined;
  readonly required?: boolean;
  readonly attributes?: Readonly<Record<string, string>>;
};

const described = ({ name, hint, problem }: Pick<FieldProps, "name" | "hint" | "problem">) =>
  [hint ? `${name}-hint` : "", problem ? `${name}-problem` : ""].filter(Boolean).join(" ") || undefined;

const About = ({ name, hint, problem }: Pick<FieldProps, "name" | "hint" | "problem">) => (
  <>
    {hint ? (
      <p class="hint" id={`${name}-hint`}>
        {hint}
      </p>
    ) : null}
    {problem ? (
      <p class="problem" id={`${name}-problem`}>
        {problem}
      </p>
    ) : null}
  </>
);

/** A field of one line, with its error beside it. */
export const Field = ({ attributes, type = "text", value, required, ...about }: FieldProps) => (
  <div class="field">
    <label for={about.name}>{about.label}</label>
    <input
      id={about.name}
      name={about.name}
      type={type}
      value={value}
      required={required}
      aria-invalid={about.problem ? "true" : undefined}
      aria-describedby={described(about)}
      {...attributes}
    />
    <About {...about} />
  </div>
);

/** A field of several lines. */
export const Area = ({ attributes, value, required, ...about }: FieldProps) => (
  <div class="field">
    <label for={about.name}>{about.label}</label>
    <textarea
      id={about.name}
      name={about.name}
      required={required}
      aria-invalid={about.problem ? "true" : undefined}
      aria-describedby={described(about)}
      {...attributes}
    >
      {value}
    </textarea>
    <About {...about} />
  </div>
);

export type Choice = { readonly value: string; readonly words: string };

/** A choice from a list. */
export const Choose = ({
  choices,
  value,
  ...about
}: Omit<FieldProps, "type" | "attributes" | "required"> & { choices: readonly Choice[] }) => (
  <div class="field">
    <label for={about.name}>{about.label}</label>
    <select
      id={about.name}
      name={about.name}
      aria-invalid={about.problem ? "true" : undefined}
      aria-describedby={described(about)}
    >
      {choices.map((choice) => (
        <option value={choice.value} selected={choice.value === value}>
          {choice.words}
        </option>
      ))}
    </select>
    <About {...about} />
  </div>
);
