/** @jsxImportSource hono/jsx */
import type { PropsWithChildren } from "hono/jsx";

/**
 * The filters of a list, which are in its URL. Its results are in `#results`, which the script alone exchanges, while one types
 * too.
 *
 * @param typed the field in which one types; none where all are choices
 */
export const Filters = ({ path, typed, children }: PropsWithChildren<{ path: string; typed?: string }>) => (
  <form
    class="filters"
    method="get"
    action={path}
    aria-label="Filters"
    hx-get={path}
    hx-trigger={typed === undefined ? "change" : `change, input delay:300ms from:#${typed}`}
    hx-target="#results"
    hx-select="#results"
    hx-swap="outerHTML"
    hx-push-url="true"
  >
    {children}
    <button type="submit">Show</button>
  </form>
);
