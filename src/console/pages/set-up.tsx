/** @jsxImportSource hono/jsx */
import { isRefusal, type Refusal, statusOf } from "../../core/errors.ts";
import { hasNoOrganisation, setUp } from "../../services/admin/set-up.ts";
import { signInByLink } from "../../services/auth/sign-in-link.ts";
import { Alone } from "../frame.tsx";
import { Notice } from "../parts/blocks.tsx";
import { Code } from "../parts/code.tsx";
import { EmailField, NameField, NewPasswordField } from "../parts/name-fields.tsx";
import { problemsOf } from "../problems.ts";
import type { Asked, Page, Redirect } from "../route.ts";

/** What links from the machine's log lead to: the first organisation, and the sign-in to a demo. */

type Fields = Readonly<Record<string, string>>;

const FIELDS = ["name", "owner_name", "owner_email", "owner_password"];

export async function showSetUp({ ctx }: Asked): Promise<Page | Redirect> {
  return (await hasNoOrganisation(ctx)) ? setUpPage({}, null) : { to: "/console" };
}

function setUpPage(fields: Fields, refusal: Refusal | null): Page {
  const problems = refusal ? problemsOf(refusal, FIELDS) : {};
  return {
    title: "Set up Holdfast",
    section: null,
    status: refusal ? statusOf(refusal.refused) : 200,
    content: (
      <Alone title="Set up Holdfast">
        <p class="quiet">
          Make the organisation whose money this Holdfast keeps, and yourself its owner. Others are invited
          later.
        </p>
        {problems[""] ? <Notice kind="problem">{problems[""]}</Notice> : null}
        <form method="post" action="/console/set-up" class="form" aria-label="Set up">
          <Code value={fields.token} />
          <NameField
            name="organisation"
            label="Organisation"
            value={fields.organisation}
            problem={problems.name}
            autocomplete="organization"
          />
          <NameField
            label="Your name"
            value={fields.name}
            problem={problems.owner_name}
            autocomplete="name"
          />
          <EmailField
            value={fields.email}
            problem={problems.owner_email}
            hint="You sign in with it."
            autocomplete="username"
          />
          <NewPasswordField
            problem={problems.owner_password}
            hint="At least 12 characters, and hard to guess: several words that have nothing to do with you or each other."
          />
          <button type="submit" class="primary wide">
            Make the organisation
          </button>
        </form>
      </Alone>
    ),
  };
}

export async function sendSetUp({ ctx, client, fields }: Asked): Promise<Page | Redirect> {
  const { token = "", organisation = "", name = "", email = "", password = "" } = fields;
  const session = await setUp(
    ctx,
    {
      ...{ token: token.trim(), name: organisation.trim(), owner_name: name.trim() },
      ...{ owner_email: email, owner_password: password },
    },
    client,
  );
  return isRefusal(session) ? setUpPage(fields, session) : { to: "/console/welcome", session };
}

const enterPage = (refusal: Refusal | null): Page => ({
  title: "Sign in",
  section: null,
  status: refusal ? statusOf(refusal.refused) : 200,
  content: (
    <Alone title="Sign in to the demo">
      {refusal ? <Notice kind="problem">{refusal.message}</Notice> : null}
      <form method="post" action="/console/enter" class="form" aria-label="Sign in" data-send-at-once>
        <Code />
        <button type="submit" class="primary wide">
          Sign in
        </button>
      </form>
      <a href="/console/sign-in">Sign in with a password</a>
    </Alone>
  ),
});

export const showEnter = async (): Promise<Page> => enterPage(null);

export async function sendEnter({ ctx, client, fields }: Asked): Promise<Page | Redirect> {
  const session = await signInByLink(ctx, (fields.token ?? "").trim(), client);
  return isRefusal(session) ? enterPage(session) : { to: "/console", session, by: "one-time link" };
}
