import { expect } from "bun:test";
import { consoleSite } from "../../src/app/site.ts";
import { createShell } from "../../src/http/shell.ts";
import type { Credentials } from "./client.ts";
import type { Service, ShellService } from "./server.ts";

/** The console beside a server of which a page reads nothing. */
export const quietSite = () =>
  consoleSite({
    operation: { readiness: async () => ({ object: "readiness", ready: true, checks: [] }) },
    backups: { newestBackup: () => null },
    anchoring: { lateMs: () => null },
    witnesses: { figures: async () => [] },
  });

/** A page of the console as a browser without a script has it. */
export type Shown = {
  readonly status: number;
  readonly headers: Headers;
  readonly html: string;
  /** Where a redirect leads; null where there is none. */
  readonly to: string | null;
  /** The text that people read, without markup. */
  readonly text: string;
};

export type Fields = Readonly<Record<string, string>>;

/** A browser at the console, signed in by a cookie. It sends what a browser sends, unless a test says otherwise. */
export function openConsole(
  service: Pick<Service, "url">,
  as: Credentials,
  send: typeof askNetwork = askNetwork,
) {
  const origin = `http://localhost:${new URL(service.url).port}`;
  const fromOwnPage = { Origin: origin, "Sec-Fetch-Site": "same-origin" };

  async function ask(path: string, init: RequestInit): Promise<Shown> {
    const response = await send(new Request(service.url + path, { ...init, redirect: "manual" }));
    const html = await response.text();
    const { status, headers } = response;
    const text = html
      .replace(/<[^>]+>/g, " ")
      .replace(/&nbsp;|\u00a0/g, " ")
      .replace(/\s+/g, " ");
    return { status, headers, html, to: headers.get("location"), text };
  }

  const get = (path: string, headers: Fields = {}) => ask(path, { headers: { ...as, ...headers } });
  const post = (path: string, fields: Fields, headers: Fields = fromOwnPage) =>
    ask(path, { method: "POST", headers: { ...as, ...headers }, body: new URLSearchParams(fields) });
  return {
    get,
    post,
    origin,
    /** The fields of the form on a page that is sent to `action`, as they stand there. */
    async formOn(path: string, action: string): Promise<Record<string, string>> {
      const page = await get(path);
      expect([path, page.status]).toEqual([path, 200]);
      return fieldsOf(page.html, action);
    },
  };
}

const askNetwork = (request: Request): Promise<Response> => fetch(request);

/** The console of a service without a socket, whose clock a test moves. */
export function consoleOfShell(service: ShellService) {
  const shell = createShell(service.ctx, {
    docsUrl: "https://docs.example",
    rateLimits: { read: 1_000_000, write: 1_000_000, bench: 1_000_000 },
    trustedProxies: [],
    onFault: (error) => console.error(error),
    site: quietSite(),
  });
  return (as: Credentials) => openConsole(service, as, (request) => shell(request, () => "192.0.2.1"));
}

export function fieldsOf(html: string, action: string): Record<string, string> {
  const form = html.split("<form").find((part) => part.includes(`action="${action}"`));
  if (form === undefined) throw new Error(`no form to ${action}`);
  const fields: Record<string, string> = {};
  for (const [input] of form.split("</form>")[0]!.matchAll(/<input[^>]*>/g)) {
    const attribute = (name: string) => new RegExp(` ${name}="([^"]*)"`).exec(input)?.[1];
    const name = attribute("name");
    const isLeftOut =
      attribute("type") === "radio" || (attribute("type") === "checkbox" && !input.includes(" checked"));
    if (name !== undefined && !isLeftOut) fields[name] = attribute("value") ?? "";
  }
  return fields;
}
