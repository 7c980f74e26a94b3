import htmx from "htmx.org/dist/htmx.min.js" with { type: "text" };
import style from "./console.css" with { type: "text" };
import script from "./console.js" with { type: "text" };
import icon from "./icon.svg" with { type: "text" };
import pushWorker from "./push-worker.js" with { type: "text" };

/** The console's own files, embedded. A path carries the hash of its content, so that browsers keep it for good. */

const asset = (name: string, type: string, body: string) => {
  const hash = new Bun.CryptoHasher("sha256").update(body).digest("hex").slice(0, 12);
  return { path: `/console/assets/${hash}/${name}`, type, body };
};

export const ASSETS = {
  style: asset("console.css", "text/css", style),
  script: asset("console.js", "text/javascript", script),
  htmx: asset("htmx.js", "text/javascript", htmx),
  icon: asset("icon.svg", "image/svg+xml", icon),
} as const;

/** The service worker. A browser asks for it by this path for good, so its path has no hash. */
export const PUSH_WORKER = {
  ...{ path: "/console/push-worker.js", type: "text/javascript", body: pushWorker },
} as const;
