/** @jsxImportSource hono/jsx */
import type { SignedIn } from "../../services/auth/callers.ts";
import { readAuthSession } from "../../services/auth/sign-in.ts";
import { Alone } from "../frame.tsx";
import { Text } from "../parts/figures.tsx";
import { Form } from "../parts/forms.tsx";
import { AddPasskey } from "../parts/passkeys.tsx";
import type { Asked, Page, Redirect } from "../route.ts";
import { pathBack } from "./sign-in.tsx";

/** What somebody does first whom the organisation asks for a passkey that this sign-in has not proved. */

export const OWED_PASSKEY = "/console/passkey";

export async function showOwedPasskey({ ctx, signedIn, search }: Asked): Promise<Page | Redirect> {
  const next = pathBack(search.get("next"));
  if (signedIn === null) return { to: `/console/sign-in?next=${encodeURIComponent(next)}` };
  const { caller, user, session } = signedIn;
  const { organisation, second_factor_owed: owed } = await readAuthSession(ctx, user, session);
  if (owed === null) return { to: next };
  const hasOne = owed === "passkey";
  const title = hasOne ? "Use your passkey" : "Add a passkey";
  return {
    title,
    section: null,
    content: (
      <Alone title={title}>
        <p>
          <Text of={organisation.name} /> asks you for {hasOne ? "your" : "a"} passkey beside the password
          {hasOne ? "" : ", and you have none yet"}. Until then only signing out is possible.
        </p>
        {hasOne ? <UsePasskey caller={caller} next={next} /> : <AddPasskey baseUrl={ctx.baseUrl} />}
        <Form by={{ ctx, caller }} action="/console/sign-out" class="plain-form">
          <button type="submit" class="link">
            Sign out
          </button>
        </Form>
      </Alone>
    ),
  };
}

/** Only a script can ask a browser for a passkey. */
const UsePasskey = ({ caller, next }: { caller: SignedIn["caller"]; next: string }) => (
  <>
    <p class="notice problem" role="alert" data-problem hidden />
    <form class="form" aria-label="Use your passkey">
      <input type="hidden" name="mode" value={caller.mode} />
      <input type="hidden" name="next" value={next} />
      <button type="button" class="primary wide" data-passkey-sign-in hidden>
        Use your passkey
      </button>
    </form>
    <p class="hint">
      It needs a browser that knows passkeys, with JavaScript on. If yours is lost, the operator of the
      machine removes it.
    </p>
  </>
);
