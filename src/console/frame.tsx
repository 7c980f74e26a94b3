/** @jsxImportSource hono/jsx */
import { ACCESS, type Access, refuseAccess } from "../core/roles.ts";
import { WAITING_MAX } from "../services/console/surroundings.ts";
import { ASSETS } from "./own-files.ts";
import { Notice } from "./parts/blocks.tsx";
import { Text } from "./parts/figures.tsx";
import { Form } from "./parts/forms.tsx";
import type { Markup } from "./parts/markup.ts";
import type { Asked, Page, Section, Visit } from "./route.ts";
import { THEMES, themeOf } from "./theme.ts";

/** The frame around every page: the document, the navigation, the switch of modes, and what a person must not overlook. */

/** Without an access everybody who is signed in may see it. */
type Entry = {
  readonly section: Section;
  readonly path: string;
  readonly words: string;
  readonly access?: Access;
};
const SECTIONS: readonly Entry[] = [
  { section: "overview", path: "/console", words: "Overview" },
  { section: "warrants", path: "/console/warrants", words: "Warrants" },
  { section: "escalations", path: "/console/escalations", words: "Escalations" },
  { section: "agents", path: "/console/agents", words: "Agents" },
  { section: "policies", path: "/console/policies", words: "Policies" },
  { section: "verifiers", path: "/console/verifiers", words: "Verifiers and schemas" },
  { section: "purchases", path: "/console/purchases", words: "Purchases" },
  { section: "money", path: "/console/money", words: "Money" },
  { section: "webhooks", path: "/console/webhooks", words: "Webhooks", access: ACCESS.administer },
  { section: "people", path: "/console/people", words: "People", access: ACCESS.administer },
  { section: "settings", path: "/console/settings", words: "Settings" },
];

const HTMX_CONFIG = JSON.stringify({ includeIndicatorCSS: false, history: true });

/** The document. Without a visit nobody is signed in. */
export const documentOf = (asked: Asked, page: Page, visit: Visit | null): string =>
  `<!doctype html>\n${(
    (
      <html lang="en" data-theme={themeOf(asked.cookies)}>
        <head>
          <meta charset="utf-8" />
          <meta name="viewport" content="width=device-width, initial-scale=1" />
          <meta name="color-scheme" content="light dark" />
          <meta name="htmx-config" content={HTMX_CONFIG} />
          <title>{`${page.title} · Holdfast`}</title>
          <link rel="canonical" href={`${new URL(asked.ctx.baseUrl).origin}${asked.path}`} />
          <link rel="icon" href={ASSETS.icon.path} type="image/svg+xml" />
          <link rel="stylesheet" href={ASSETS.style.path} />
          <script type="module" src={ASSETS.script.path} />
          <script defer src={ASSETS.htmx.path} />
        </head>
        {visit ? <Signed page={page} visit={visit} /> : <body class="plain">{page.content}</body>}
      </html>
    )
  ).toString()}\n`;

const Signed = ({ page, visit }: { page: Page; visit: Visit }) => (
  <body data-position={visit.position}>
    <a class="skip" href="#main">
      Skip to the content
    </a>
    <Sidebar section={page.section} visit={visit} />
    <div class="body">
      {visit.caller.mode === "sandbox" ? (
        <p class="sandbox">
          <strong>SANDBOX</strong> No money here is real.
        </p>
      ) : null}
      <div id="kill-switch" data-live="organisation">
        {visit.around.organisation.killSwitch ? (
          <Notice kind="problem">
            The kill switch is on: no new warrant opens. Those that are open go on.
          </Notice>
        ) : null}
      </div>
      <main id="main" tabindex={-1}>
        {page.content}
      </main>
    </div>
    <dialog id="dialog" aria-label="Confirm">
      <div id="dialog-content" />
    </dialog>
  </body>
);

const Sidebar = ({ section, visit }: { section: Section | null; visit: Visit }) => (
  <aside class="sidebar">
    <a class="brand" href="/console">
      <img src={ASSETS.icon.path} alt="" width="22" height="22" />
      Holdfast
    </a>
    <ModeSwitch visit={visit} />
    <nav aria-label="Console">
      <ul>
        {SECTIONS.filter(({ access }) => !access || !refuseAccess(visit.caller, access)).map((one) => (
          <li>
            <a href={one.path} aria-current={one.section === section ? "page" : undefined}>
              {one.words}
              {one.section === "escalations" ? (
                <span id="waiting" data-live="escalations">
                  <Waiting count={visit.around.waiting} />
                </span>
              ) : null}
            </a>
          </li>
        ))}
      </ul>
    </nav>
    <Account visit={visit} />
  </aside>
);

const Waiting = ({ count }: { count: number }) =>
  count === 0 ? null : (
    <span class="count">
      {count < WAITING_MAX ? count : `${WAITING_MAX - 1}+`}
      <span class="hidden"> waiting</span>
    </span>
  );

/** Both modes side by side; the one that is on is pressed. */
const ModeSwitch = ({ visit }: { visit: Visit }) => (
  <Form by={visit} action="/console/mode" class="switch" label="Mode">
    <Here path={visit.path} />
    {(["live", "sandbox"] as const).map((mode) => (
      <button
        type="submit"
        name="mode"
        value={mode}
        aria-pressed={mode === visit.caller.mode ? "true" : "false"}
      >
        {mode === "live" ? "Live" : "Sandbox"}
      </button>
    ))}
  </Form>
);

const Account = ({ visit }: { visit: Visit }) => (
  <details class="account">
    <summary>
      <span class="who">
        <Text of={visit.user.name || visit.user.email} />
        <small>
          {visit.user.role} · <Text of={visit.around.organisation.name} />
        </small>
      </span>
    </summary>
    <div class="menu">
      <form method="post" action="/console/theme" class="switch" aria-label="Colours">
        <Here path={visit.path} />
        {THEMES.map((theme) => (
          <button
            type="submit"
            name="theme"
            value={theme}
            aria-pressed={theme === themeOf(visit.cookies) ? "true" : "false"}
          >
            {theme}
          </button>
        ))}
      </form>
      <a href="/console/account">Passkeys and password</a>
      <a href="/console/settings/notices">Notices</a>
      <a href="/docs">Documentation</a>
      <Form by={visit} action="/console/sign-out" class="plain-form">
        <button type="submit" class="link">
          Sign out
        </button>
      </Form>
    </div>
  </details>
);

/** Where a form leads back to. */
const Here = ({ path }: { path: string }) => <input type="hidden" name="back" value={path} />;

/** A page for somebody who is not signed in, and for what went wrong: one card in the middle. */
export const Alone = ({ title, children }: { title: string; children?: Markup }) => (
  <main class="alone" id="main">
    <p class="brand">
      <img src={ASSETS.icon.path} alt="" width="26" height="26" />
      Holdfast
    </p>
    <section class="card">
      <h1>{title}</h1>
      {children}
    </section>
  </main>
);
