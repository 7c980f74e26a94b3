/** @jsxImportSource hono/jsx */
import { isRefusal, statusOf } from "../../core/errors.ts";
import { MODES } from "../../core/roles.ts";
import { hasNoOrganisation } from "../../services/admin/set-up.ts";
import { signOut as endSignIn, signIn as signInPerson } from "../../services/auth/sign-in.ts";
import { switchMode as switchModeOf } from "../../services/auth/switch-mode.ts";
import { Alone } from "../frame.tsx";
import { Notice } from "../parts/blocks.tsx";
import { Choose } from "../parts/forms.tsx";
import { EmailField, PasswordField } from "../parts/name-fields.tsx";
import type { Asked, Page, Redirect, Submission } from "../route.ts";
import { isTheme, THEME_COOKIE } from "../theme.ts";

/** Signing in and out, and what a person chooses for the whole console: the mode and the colours. */

/** A path of the console, so that no link leads through here to another site. */
export const pathBack = (path: string | null | undefined): string =>
  path && /^\/console(?:[/?][\w\-./?=&%~+]*)?$/.test(path) ? path : "/console";

type Tried = { readonly email: string; readonly mode: string; readonly problem: string };

const signInPage = (next: string, tried: Tried | null, status = 200): Page => ({
  title: "Sign in",
  section: null,
  status,
  content: (
    <Alone title="Sign in">
      {tried ? <Notice kind="problem">{tried.problem}</Notice> : null}
      <p class="notice problem" role="alert" data-problem hidden />
      <form method="post" action="/console/sign-in" class="form">
        <input type="hidden" name="next" value={next} />
        <EmailField value={tried?.email ?? ""} autocomplete="username webauthn" />
        <PasswordField />
        <Choose
          name="mode"
          label="Mode"
          value={tried?.mode ?? "live"}
          choices={[
            { value: "live", words: "Live" },
            { value: "sandbox", words: "Sandbox: no money there is real" },
          ]}
        />
        <button type="submit" class="primary wide">
          Sign in
        </button>
        <button type="button" class="wide" data-passkey-sign-in hidden>
          Sign in with a passkey
        </button>
      </form>
    </Alone>
  ),
});

export async function showSignIn({ ctx, search, signedIn }: Asked): Promise<Page | Redirect> {
  const next = pathBack(search.get("next"));
  if (signedIn && !signedIn.caller.owesPasskey) return { to: next };
  return (await hasNoOrganisation(ctx)) ? NOT_SET_UP : signInPage(next, null);
}

/** Nobody can sign in yet. The link itself is for whoever reads the machine's log. */
const NOT_SET_UP: Page = {
  title: "Set up Holdfast",
  section: null,
  content: (
    <Alone title="Holdfast is not set up yet">
      <p>
        When it started, it printed a link on the log of its machine. Open that link: it makes the first
        organisation, and you its owner.
      </p>
      <p class="quiet">
        The link is good once, for 30 minutes. A restart prints a new one. On the command line,{" "}
        <code>holdfast organisations create</code> does the same.
      </p>
    </Alone>
  ),
};

export async function sendSignIn({ ctx, client, fields }: Asked): Promise<Page | Redirect> {
  const { email = "", password = "", mode = "live" } = fields;
  const next = pathBack(fields.next);
  const known = MODES.find((one) => one === mode) ?? "live";
  const session = await signInPerson(ctx, { email, password, mode: known }, client);
  if (!isRefusal(session)) return { to: next, session };
  return signInPage(next, { email, mode: known, problem: session.message }, statusOf(session.refused));
}

export async function sendSignOut({ ctx, signedIn, client }: Submission): Promise<Redirect> {
  await endSignIn(ctx, signedIn, client);
  return { to: "/console/sign-in", session: null };
}

export async function sendMode({ ctx, caller, fields }: Submission) {
  const mode = MODES.find((one) => one === fields.mode) ?? "live";
  const switched = await switchModeOf(ctx, caller, mode);
  // The warrant that a page shows does not exist in the other mode, so the page of its list is shown.
  return isRefusal(switched) ? switched : { to: sectionOf(pathBack(fields.back)) };
}

/** `/console/warrants/wrt_…` → /console/warrants. */
const sectionOf = (path: string): string => path.split(/[/?]/).slice(0, 3).join("/");

const YEAR_SECONDS = 365 * 24 * 60 * 60;

export async function sendTheme({ ctx, fields }: Asked): Promise<Redirect> {
  const cookie = new Bun.Cookie(THEME_COOKIE, isTheme(fields.theme) ? fields.theme : "auto", {
    ...{ path: "/console", sameSite: "lax", httpOnly: true, maxAge: YEAR_SECONDS },
    secure: ctx.baseUrl.startsWith("https:"),
  });
  return { to: pathBack(fields.back), headers: { "Set-Cookie": cookie.toString() } };
}
