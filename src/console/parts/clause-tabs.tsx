/** @jsxImportSource hono/jsx */
import { roleIsAtLeast } from "../../core/roles.ts";
import type { Visit } from "../route.ts";
import { Head, Tabs } from "./blocks.tsx";

const TABS = [
  { path: "/console/verifiers", words: "Verifiers" },
  { path: "/console/schemas", words: "Schemas" },
  { path: "/console/bench", words: "Bench" },
] as const;

type ClauseHeadProps = {
  visit: Pick<Visit, "caller">;
  current: (typeof TABS)[number]["path"];
  /** The page where an admin makes a new one, and the words of the link to it. */
  make?: { readonly path: string; readonly words: string };
};

/** The head of the pages of what clauses are made from, and of where they are tried. */
export const ClauseHead = ({ visit, current, make }: ClauseHeadProps) => (
  <>
    <Head
      title="Verifiers and schemas"
      about="Clauses and JSON Schemas are saved once, and named by warrants. On the bench nothing is held, paid or recorded."
      actions={
        make && roleIsAtLeast(visit.caller.role, "admin") ? (
          <a class="button primary" href={make.path}>
            {make.words}
          </a>
        ) : null
      }
    />
    <Tabs label="Verifiers and schemas" tabs={TABS} current={current} />
  </>
);
