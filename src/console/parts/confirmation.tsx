/** @jsxImportSource hono/jsx */
import type { PropsWithChildren } from "hono/jsx";
import { Head, Notice } from "./blocks.tsx";
import type { Markup } from "./markup.ts";

/**
 * What will happen, before it does. It is a page of its own; with the script it opens over the page that it is about.
 *
 * @param back the page that it is about
 * @param problem why it was refused, where it was
 */
export const Confirmation = ({
  title,
  back,
  problem,
  children,
}: PropsWithChildren<{ title: Markup; back: string; problem?: string | undefined }>) => (
  <div id="confirm">
    <Head title={title} />
    {problem ? <Notice kind="problem">{problem}</Notice> : null}
    {children}
    <a href={back} data-cancel>
      Leave it as it is
    </a>
  </div>
);
