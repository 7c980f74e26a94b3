/** @jsxImportSource hono/jsx */
import { Field } from "./forms.tsx";

/**
 * The code of a one-time link. The script fills it in from the link, where it stands after the `#`. Without a script a person
 * copies it.
 */
export const Code = ({ value, problem }: { value?: string | undefined; problem?: string | undefined }) => (
  <div data-code>
    <Field
      name="token"
      label="Code"
      required
      value={value}
      problem={problem}
      hint={
        <>
          The part of the link after the <code>#</code>.
        </>
      }
      attributes={{ maxlength: "100", autocomplete: "off", "data-from-hash": "" }}
    />
  </div>
);
