/** @jsxImportSource hono/jsx */
import type { Visit } from "../route.ts";
import { Badge } from "./figures.tsx";
import { Form } from "./forms.tsx";
import type { Markup } from "./markup.ts";

/** What a card of a switch shows: whether it is on, who turns it, and the button that does. */

export const State = ({ isOn }: { isOn: boolean }) => (
  <Badge look={isOn ? "pass" : ""} of={isOn ? "on" : "off"} />
);

export const OnlyFor = ({ who }: { who: "an owner" | "an admin or owner" }) => (
  <p class="hint">Only {who} changes this.</p>
);

type TurnProps = { visit: Visit; path: string; isOn: boolean; words: Markup; look?: "wide" | "link" };

/** A button that turns a switch over. */
export const Turn = ({ visit, path, isOn, words, look = "wide" }: TurnProps) => (
  <Form by={visit} action={path} class="plain-form">
    <input type="hidden" name="to" value={isOn ? "off" : "on"} />
    <button type="submit" class={look}>
      {words}
    </button>
  </Form>
);
