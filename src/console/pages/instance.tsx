/** @jsxImportSource hono/jsx */
import { isRefusal, type Refusal } from "../../core/errors.ts";
import { roleIsAtLeast } from "../../core/roles.ts";
import { readInstance } from "../../services/console/settings.ts";
import { awaitsAcknowledgement } from "../../services/instance.ts";
import type { InstanceState } from "../instance-state.ts";
import { Card, Facts, Notice } from "../parts/blocks.tsx";
import { Badge, Id, Text, Time } from "../parts/figures.tsx";
import type { Markup } from "../parts/markup.ts";
import type { Visit } from "../route.ts";

/** What the instance says of itself. Its settings are the environment's, so a page only shows them. */

/** Null for somebody who sees nothing of it. */
export async function readShownInstance(visit: Visit, state: InstanceState | null) {
  if (state === null || !roleIsAtLeast(visit.caller.role, "admin")) return null;
  const kept = await readInstance(visit.ctx, visit.caller);
  if (isRefusal(kept)) return kept;
  return {
    ...kept,
    version: state.version,
    baseUrl: visit.ctx.baseUrl,
    keys: visit.ctx.tokens.jwks.keys.map(({ kid }) => kid),
    readiness: await state.readiness(visit.ctx),
    newestBackup: state.newestBackup(),
    anchorLateMs: state.anchorLateMs(),
    witnesses: await state.witnesses(visit.ctx),
  };
}

export type ShownInstance = Exclude<Awaited<ReturnType<typeof readShownInstance>>, Refusal | null>;

export const InstanceCard = ({ shown }: { shown: ShownInstance }) => (
  <div class="halves">
    <Card title="Service" aside={<Ready shown={shown} />}>
      {shown.readiness.checks
        .filter(({ ok }) => !ok)
        .map(({ message }) => (
          <Notice kind="problem">{message}</Notice>
        ))}
      {awaitsAcknowledgement(shown.instance) ? (
        <Notice kind="problem">
          The ledger was restored from a backup: no live money moves until{" "}
          <code>holdfast restore acknowledge</code> on the machine.
        </Notice>
      ) : null}
      <Facts
        of={[
          ["Base URL", <Text of={shown.baseUrl} />],
          ["Version", shown.version],
          ["Instance", <Id of={shown.instance.id} />],
          ["Backups", backupWords(shown)],
        ]}
      />
      <p class="hint">
        These are set on the machine. <a href="/docs/configuration">Configuration</a> ·{" "}
        <a href="/docs/operating">Operating it</a>
      </p>
    </Card>
    <Card title="Proof">
      <Facts
        of={[
          ["Log", `${shown.logSize} entries`],
          [
            "Checkpoint",
            shown.newestCheckpoint === null
              ? "none yet"
              : `number ${shown.newestCheckpoint.number}, of ${shown.newestCheckpoint.size} entries`,
          ],
          ["Anchors", anchorWords(shown)],
          ["Witnesses", <Witnesses of={shown.witnesses} />],
          [
            shown.keys.length === 1 ? "Key" : "Keys, newest first",
            shown.keys.map((kid) => (
              <div>
                <Id of={kid} />
              </div>
            )),
          ],
        ]}
      />
      <p class="hint">
        The public keys are at <a href="/.well-known/jwks.json">/.well-known/jwks.json</a>.
      </p>
    </Card>
  </div>
);

const Ready = ({ shown: { readiness } }: { shown: ShownInstance }) => (
  <Badge look={readiness.ready ? "pass" : "fail"} of={readiness.ready ? "ready" : "not ready"} />
);

function backupWords({ newestBackup }: ShownInstance): Markup {
  if (newestBackup === null) return "the server makes none by itself";
  if (newestBackup.agreedAt === 0) return "none yet";
  return (
    <>
      the newest is of <Time at={newestBackup.agreedAt} />
      {newestBackup.disagrees ? ", and a later one disagrees with itself" : null}
    </>
  );
}

function anchorWords({ anchorLateMs, anchoredSize }: ShownInstance): string {
  if (anchorLateMs === null) return "in the local log alone, on no chain";
  const late = anchorLateMs === 0 ? "" : `, late by ${Math.round(anchorLateMs / 60_000)} min`;
  return `on a chain up to entry ${anchoredSize}${late}`;
}

const Witnesses = ({ of }: { of: ShownInstance["witnesses"] }) => (
  <>
    {of.length === 0 ? "none" : null}
    {of.map(({ witness, hasSigned }) => (
      <div>
        <Text of={witness} /> <span class="quiet">{signedWords(hasSigned)}</span>
      </div>
    ))}
  </>
);

function signedWords(hasSigned: boolean | null): string {
  if (hasSigned === null) return "no checkpoint yet";
  return hasSigned ? "has signed the newest checkpoint" : "has not signed the newest checkpoint";
}
