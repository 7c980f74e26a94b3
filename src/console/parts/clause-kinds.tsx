/** @jsxImportSource hono/jsx */
import { clauseTemplates } from "../../core/clauses/registry.ts";
import { Card } from "./blocks.tsx";
import { Sentence } from "./figures.tsx";

/** Every kind of clauses, with what it asserts. */
export const ClauseKinds = () => (
  <Card title="Kinds of clauses" aside={<a href="/docs/clauses">Examples</a>}>
    <ul class="steps">
      {clauseTemplates.map(({ kind, description }) => (
        <li>
          <div>
            <code>{kind}</code>
            <p class="quiet">
              <Sentence of={description} />
            </p>
          </div>
        </li>
      ))}
    </ul>
  </Card>
);
