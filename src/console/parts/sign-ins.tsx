/** @jsxImportSource hono/jsx */
import type { Refusal } from "../../core/errors.ts";
import type { listOwnSignIns } from "../../services/auth/sign-ins.ts";
import type { Visit } from "../route.ts";
import { Empty } from "./blocks.tsx";
import { Badge, Text, Time } from "./figures.tsx";
import { Form } from "./forms.tsx";

type SignIn = Exclude<Awaited<ReturnType<typeof listOwnSignIns>>, Refusal>["data"][number];

/** Where a person is signed in; each sign-in can be ended, and all at once. */
export const SignIns = ({
  visit,
  signIns,
  action,
}: {
  visit: Visit;
  signIns: readonly SignIn[];
  /** Where the forms are sent: with the field `sign_in` it is about one, without it about all. */
  action: string;
}) =>
  signIns.length === 0 ? (
    <Empty title="Nowhere">
      <p>Nobody is signed in as this person.</p>
    </Empty>
  ) : (
    <>
      <ul class="steps">
        {signIns.map((signIn) => (
          <li>
            <div>
              <Text of={signIn.agent || "a program without a name"} />
              {signIn.current ? <Badge look="pass" of="this one" /> : null}
              <div class="quiet">
                {signIn.address === null ? "address not known" : <Text of={signIn.address} />} · {signIn.mode}{" "}
                · since <Time at={Date.parse(signIn.created_at)} /> · last used{" "}
                <Time at={Date.parse(signIn.last_used_at)} />
              </div>
            </div>
            {signIn.current ? null : (
              <Form by={visit} action={action} class="plain-form" label={`End ${signIn.id}`}>
                <input type="hidden" name="sign_in" value={signIn.id} />
                <button type="submit">End</button>
              </Form>
            )}
          </li>
        ))}
      </ul>
      <Form by={visit} action={action} class="plain-form" label="End all">
        <button type="submit" class="danger">
          Sign out everywhere
        </button>
      </Form>
    </>
  );
