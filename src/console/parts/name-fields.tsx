/** @jsxImportSource hono/jsx */
import { PASSWORD_LENGTH_MAX, PASSWORD_LENGTH_MIN } from "../../core/user.ts";
import { Field, type FieldProps } from "./forms.tsx";

/** Names, e-mail addresses and passwords, each with its limits and what a browser fills in. */

const NAME_LENGTH_MAX = "200";
const EMAIL_LENGTH_MAX = "254";

type NamedField = Pick<FieldProps, "value" | "problem" | "hint"> &
  Partial<Pick<FieldProps, "name" | "label">> & {
    /** What a browser fills in; nothing for somebody else's. */
    readonly autocomplete?: string;
  };

/** What somebody or something is called. */
export const NameField = ({ autocomplete = "off", ...field }: NamedField) => (
  <Field
    name="name"
    label="Name"
    required
    {...field}
    attributes={{ maxlength: NAME_LENGTH_MAX, autocomplete }}
  />
);

export const EmailField = ({ autocomplete = "off", ...field }: NamedField) => (
  <Field
    name="email"
    label="E-mail"
    type="email"
    required
    {...field}
    attributes={{ maxlength: EMAIL_LENGTH_MAX, autocomplete }}
  />
);

/** The password that somebody has. */
export const PasswordField = (field: Omit<NamedField, "value" | "autocomplete">) => (
  <Field
    name="password"
    label="Password"
    type="password"
    required
    {...field}
    attributes={{ maxlength: `${PASSWORD_LENGTH_MAX}`, autocomplete: "current-password" }}
  />
);

/** A password that somebody chooses. */
export const NewPasswordField = (field: Omit<NamedField, "value" | "autocomplete">) => (
  <Field
    name="password"
    label="Password"
    type="password"
    required
    {...field}
    attributes={{
      minlength: `${PASSWORD_LENGTH_MIN}`,
      maxlength: `${PASSWORD_LENGTH_MAX}`,
      autocomplete: "new-password",
    }}
  />
);
