/** @jsxImportSource hono/jsx */
import type { PropsWithChildren } from "hono/jsx";

/**
 * The filters of a list, which are in its URL. Its results are in `#results`, which the script alone exchanges, while one types
 * in the field `q` too.
 */
export const Filters = ({ path, children, ...own }: PropsWithChildren<{ path: string; class?: string }>) => (
  <form
    class={own.class ?? "filters"}
    method="get"
    action={path}
    aria-label="Filters"
    hx-get={path}
    hx-trigger="change, input delay:300ms from:#q"
    hx-target="#results"
    hx-select="#results"
    hx-swap="outerHTML"
    hx-push-url="true"
  >
    {children}
    <button type="submit">Show</button>
  </form>
);
