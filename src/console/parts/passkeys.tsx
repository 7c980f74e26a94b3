/** @jsxImportSource hono/jsx */
import { isRefusal } from "../../core/errors.ts";
import { relyingPartyOf } from "../../core/passkey.ts";
import { Notice } from "./blocks.tsx";
import { NameField, PasswordField } from "./name-fields.tsx";

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
        <NameField name="passkey_name" hint="Such as Laptop, or Phone." />
        <PasswordField
          name="passkey_password"
          label="Your password"
          hint="It is asked for again, so that nobody adds one at a screen that you left."
        />
        <button type="submit">Add a passkey</button>
      </form>
    </>
  );
};
