import packageJson from "../../package.json" with { type: "json" };
import type { InstanceState } from "../console/instance-state.ts";
import type { Site } from "../http/pages.ts";
import { SELF } from "./children.ts";

/** The console. Its code is loaded for the first of its pages, since no start waits for it. */

const isFromSource = SELF.length > 1;

function load(instance: InstanceState): Site {
  const { createSite } = require("../console/site.tsx") as typeof import("../console/site.tsx");
  return createSite(isFromSource, instance);
}

/** Its addresses besides those below /console. */
const BESIDE: ReadonlySet<string> = new Set(["/", "/account", "/reset-password", "/console"]);
const isOfConsole = (path: string): boolean => BESIDE.has(path) || path.startsWith("/console/");

/** What of the running server knows how it is. */
type Parts = {
  readonly operation: Pick<InstanceState, "readiness">;
  readonly backups: Pick<InstanceState, "newestBackup">;
  readonly anchoring: { readonly lateMs: InstanceState["anchorLateMs"] };
  readonly witnesses: { readonly figures: InstanceState["witnesses"] };
};

export function consoleSite({ operation, backups, anchoring, witnesses }: Parts): Site {
  const instance: InstanceState = {
    version: packageJson.version,
    readiness: operation.readiness,
    newestBackup: backups.newestBackup,
    anchorLateMs: anchoring.lateMs,
    witnesses: witnesses.figures,
  };
  let loaded: Site | null = null;
  return {
    find(method, path) {
      if (!isOfConsole(path)) return null;
      loaded ??= load(instance);
      return loaded.find(method, path);
    },
  };
}
