/** @jsxImportSource hono/jsx */
import { isRefusal } from "../../core/errors.ts";
import { relyingPartyOf } from "../../core/passkey.ts";
import { Notice } from "./blocks.tsx";
import { Field } from "./forms.tsx";

/**
 * Adds a passkey of the person who sees it. Only a script can ask a browser for one, so without a script it says that; where the
 * service's address allows none, why.
 */
export const AddPasskey = ({ baseUrl }: { baseUrl: string }) => {
  const party = relyingPartyOf(baseUrl);
  if (isRefusal(party)) return <Notice kind="note">{party.message}</Notice>;
  return (
    <>
      <noscript>
        <p class="notice note">A browser makes a passkey only where JavaScript is on.</p>
      </noscript>
      <form class="form" data-add-passkey hidden aria-label="Add a passkey">
        <p class="notice problem" role="alert" data-problem hidden />
        <Field
          name="passkey_name"
          label="Name"
          required
          attributes={{ maxlength: "200", placeholder: "Laptop", autocomplete: "off" }}
        />
        <Field
          name="passkey_password"
          label="Your password"
          type="password"
          required
          hint="It is asked for again, so that nobody adds one at a screen that you left."
          attributes={{ autocomplete: "current-password", maxlength: "256" }}
        />
        <button type="submit">Add a passkey</button>
      </form>
    </>
  );
};
