/** @jsxImportSource hono/jsx */
import { type Refusal, statusOf } from "../../core/errors.ts";
import { resetPassword } from "../../services/auth/password.ts";
import { Alone } from "../frame.tsx";
import { Notice } from "../parts/blocks.tsx";
import { Code } from "../parts/code.tsx";
import { NewPasswordField } from "../parts/name-fields.tsx";
import { problemsOf } from "../problems.ts";
import type { Asked, Page } from "../route.ts";

/** What an invitation and a reset link lead to. */

export const showPasswordReset = async (): Promise<Page> => resetPage("", null);

function resetPage(token: string, refusal: Refusal | null): Page {
  const problems = refusal ? problemsOf(refusal, ["new_password"]) : {};
  return {
    title: "Choose a new password",
    section: null,
    status: refusal ? statusOf(refusal.refused) : 200,
    content: (
      <Alone title="Choose a new password">
        <p class="quiet">You are signed out everywhere then.</p>
        <p class="notice problem" role="alert" data-problem hidden />
        {problems[""] ? <Notice kind="problem">{problems[""]}</Notice> : null}
        <form method="post" action="/reset-password" class="form" aria-label="Choose a new password">
          <Code value={token} />
          <NewPasswordField
            name="new_password"
            label="New password"
            problem={problems.new_password}
            hint="At least 12 characters, and hard to guess: several words that have nothing to do with you or each other."
          />
          <button type="submit" class="primary wide">
            Set the password
          </button>
        </form>
        <a href="/console/sign-in">Sign in</a>
      </Alone>
    ),
  };
}

export async function sendPasswordReset({ ctx, client, fields }: Asked): Promise<Page> {
  const { new_password = "" } = fields;
  const token = (fields.token ?? "").trim();
  const refusal = await resetPassword(ctx, { token, new_password }, client);
  return refusal ? resetPage(token, refusal) : IS_SET;
}

const IS_SET: Page = {
  title: "You have a new password",
  section: null,
  content: (
    <Alone title="You have a new password">
      <p>Your password is set. Sign in with it.</p>
      <a class="button primary wide" href="/console/sign-in">
        Sign in
      </a>
    </Alone>
  ),
};
