import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { consoleRoutes } from "../../src/console/routes.ts";
import { createSubmissions } from "../../src/console/submissions.ts";
import { ROLES, roleIsAtLeast } from "../../src/core/roles.ts";
import { MACHINE } from "../../src/services/admin/authority.ts";
import { setKillSwitch } from "../../src/services/admin/switches.ts";
import { openConsole } from "../support/console.ts";
import { must, PASSWORD, type TestOrganisation } from "../support/organisations.ts";
import { type Service, startTestServer } from "../support/server.ts";

/** What is the same for every page and form of the console: who may see it, where a form comes from, and that it does one thing. */

let service: Service;
let home: TestOrganisation;
beforeAll(async () => {
  service = await startTestServer();
  home = await service.organisation();
});
afterAll(() => service?.close());

const routes = consoleRoutes(true);
/** A stream has no end, so that `console-live.test.ts` has its rules. */
const forPeople = routes.filter(({ access, kind }) => access !== null && kind !== "stream");
const forms = routes.filter(({ method }) => method === "POST");
const nameOf = ({ method, path }: { method: string; path: string }) => `${method} ${path}`;
const pathOf = (path: string) => path.replaceAll(/:\w+/g, "none");
const as = (role: "viewer" | "operator" | "admin" | "owner") => openConsole(service, home.people[role].as);

/** Which role each page and form needs. A new one has its line here. */
const ROLE_OF: Readonly<Record<string, string>> = {
  "GET /": "anybody",
  "GET /console/sign-in": "anybody",
  "POST /console/sign-in": "anybody",
  "GET /console/set-up": "anybody",
  "POST /console/set-up": "anybody",
  "GET /console/enter": "anybody",
  "POST /console/enter": "anybody",
  "POST /console/theme": "anybody",
  "POST /console/sign-out": "viewer",
  "POST /console/mode": "viewer",
  "GET /console": "viewer",
  "GET /console/components": "viewer",
  "GET /console/warrants": "viewer",
  "GET /console/warrants/new": "operator",
  "POST /console/warrants/new": "operator",
  "GET /console/warrants/:id": "viewer",
  "POST /console/warrants/:id/verify": "operator",
  "GET /console/warrants/:id/settle/:decision": "operator",
  "POST /console/warrants/:id/settle/:decision": "operator",
  "GET /console/escalations": "viewer",
  "GET /console/escalations/:id": "viewer",
  "POST /console/escalations/:id": "operator",
  "GET /console/settings/notices": "viewer",
  "POST /console/settings/notices": "viewer",
  "GET /console/settings/notices/chat": "viewer",
  "POST /console/settings/notices/chat": "viewer",
  "POST /console/settings/notices/chat/unlink": "viewer",
  "GET /console/policies": "viewer",
  "GET /console/policies/new": "admin",
  "POST /console/policies": "admin",
  "POST /console/policies/try": "admin",
  "GET /console/policies/:id": "viewer",
  "GET /console/verifiers": "viewer",
  "GET /console/verifiers/new": "admin",
  "POST /console/verifiers": "admin",
  "GET /console/verifiers/:id": "viewer",
  "GET /console/schemas": "viewer",
  "GET /console/schemas/new": "admin",
  "POST /console/schemas": "admin",
  "GET /console/schemas/:id": "viewer",
  "GET /console/bench": "viewer",
  "POST /console/bench": "viewer",
  "GET /console/events": "viewer",
  "GET /console/webhooks": "admin",
  "GET /console/webhooks/new": "admin",
  "POST /console/webhooks/new": "admin",
  "GET /console/webhooks/:id": "admin",
  "POST /console/webhooks/:id/example": "admin",
  "POST /console/webhooks/:id/recover": "admin",
  "GET /console/webhooks/:id/disable": "admin",
  "POST /console/webhooks/:id/disable": "admin",
  "GET /console/deliveries": "admin",
  "GET /console/deliveries/:id": "admin",
  "POST /console/deliveries/:id/redeliver": "admin",
  "GET /console/purchases": "viewer",
  "GET /console/purchases/:id": "viewer",
  "GET /console/purchases/:id/say/:verb": "admin",
  "POST /console/purchases/:id/say/:verb": "admin",
  "GET /console/money": "viewer",
  "GET /console/money/deposit": "admin",
  "POST /console/money/deposit": "admin",
  "GET /console/welcome": "admin",
  "POST /console/welcome": "admin",
  "GET /console/people": "admin",
  "GET /console/people/new": "admin",
  "POST /console/people/new": "admin",
  "GET /console/people/:id": "admin",
  "POST /console/people/:id/role": "admin",
  "POST /console/people/:id/sign-out": "admin",
  "POST /console/people/:id/reset-link": "admin",
  "GET /console/people/:id/remove": "admin",
  "POST /console/people/:id/remove": "admin",
  "GET /console/audit-log": "admin",
  "GET /console/account": "viewer",
  "POST /console/account/name": "viewer",
  "POST /console/account/password": "viewer",
  "POST /console/account/sign-out": "viewer",
  "GET /console/account/remove-passkey": "viewer",
  "POST /console/account/remove-passkey": "viewer",
  "GET /console/settings": "viewer",
  "GET /console/settings/kill-switch/:state": "admin",
  "POST /console/settings/kill-switch/:state": "admin",
  "POST /console/settings/passkey-threshold": "owner",
  "POST /console/settings/second-factor": "owner",
  "POST /console/settings/receipt-specs": "admin",
  "POST /console/settings/messaging-decisions": "admin",
  "GET /console/agents": "viewer",
  "GET /console/agents/new": "admin",
  "POST /console/agents/new": "admin",
  "GET /console/agents/:id": "viewer",
  "GET /console/agents/:id/edit": "admin",
  "POST /console/agents/:id/edit": "admin",
  "GET /console/agents/:id/pause": "operator",
  "POST /console/agents/:id/pause": "operator",
  "GET /console/agents/:id/activate": "admin",
  "POST /console/agents/:id/activate": "admin",
  "GET /console/agents/:id/kill": "admin",
  "POST /console/agents/:id/kill": "admin",
  "GET /console/agents/:id/keys": "admin",
  "POST /console/agents/:id/keys": "admin",
  "GET /console/keys/:id/rotate": "admin",
  "POST /console/keys/:id/rotate": "admin",
  "GET /console/keys/:id/revoke": "admin",
  "POST /console/keys/:id/revoke": "admin",
  "GET /console/agents/:id/sessions": "viewer",
  "GET /console/agents/:id/sessions/new": "admin",
  "POST /console/agents/:id/sessions/new": "admin",
  "GET /console/sessions/:id": "viewer",
  "GET /console/sessions/:id/end": "admin",
  "POST /console/sessions/:id/end": "admin",
};

test("each page and form needs the role that the table says", () => {
  const found = routes
    .filter(({ kind }) => kind !== "file")
    .map((route) => [nameOf(route), route.access?.role ?? "anybody"]);
  expect(Object.fromEntries(found)).toEqual(ROLE_OF);
});

describe.each(ROLES)("a person who is %s", (role) => {
  test.each(forPeople.map((route) => [nameOf(route), route] as const))("at %s", async (_, route) => {
    const browser = as(role);
    const path = pathOf(route.path);
    const { status } = route.method === "GET" ? await browser.get(path) : await browser.post(path, {});
    expect(status === 403).toBe(!roleIsAtLeast(role, route.access!.role));
  });
});

test.each(forPeople.map((route) => [nameOf(route), route] as const))(
  "an API key sees nothing of %s",
  async (_, route) => {
    const machine = openConsole(service, home.live.as);
    const path = pathOf(route.path);
    const reply = route.method === "GET" ? await machine.get(path) : await machine.post(path, {});
    expect([reply.status, reply.text]).toEqual([403, expect.stringContaining("a signed-in person can")]);
  },
);

test.each(forPeople.map((route) => [nameOf(route), route] as const))(
  "a stranger at %s signs in first",
  async (_, route) => {
    const stranger = openConsole(service, {});
    const path = pathOf(route.path);
    if (route.method === "POST") {
      expect((await stranger.post(path, {})).status).toBe(401);
    } else {
      const { status, to } = await stranger.get(path);
      expect([status, to]).toEqual([303, `/console/sign-in?next=${encodeURIComponent(path)}`]);
    }
  },
);

describe.each(forms.map((route) => [nameOf(route), pathOf(route.path)] as const))(
  "the form %s",
  (_, path) => {
    test.each([
      ["another site's page", { Origin: "https://evil.example", "Sec-Fetch-Site": "cross-site" }],
      ["another site's page in an old browser", { Origin: "https://evil.example" }],
      ["a page of a neighbouring host", { "Sec-Fetch-Site": "same-site" }],
      ["a page without an origin", { Origin: "null" }],
      ["a link", { "Sec-Fetch-Site": "none" }],
      ["a program", {}],
    ])("is refused from %s", async (_, headers) => {
      const reply = await as("owner").post(path, {}, headers);
      expect([reply.status, reply.headers.get("set-cookie")]).toEqual([401, null]);
      expect(reply.text).toContain("was not sent from Holdfast's own pages".replace("'", "&#39;"));
    });

    test("is refused as anything but a form", async () => {
      const browser = as("owner");
      const headers = { Origin: browser.origin, "Content-Type": "application/json" };
      const reply = await browser.post(path, {}, headers);
      expect([reply.status, reply.text]).toEqual([400, expect.stringContaining("x-www-form-urlencoded")]);
    });
  },
);

describe.each(
  forms.filter(({ access }) => access).map((route) => [nameOf(route), pathOf(route.path)] as const),
)("the form %s", (_, path) => {
  test("needs the key that it was made with", async () => {
    const reply = await as("owner").post(path, { _mode: "live" });
    expect([reply.status, reply.text]).toEqual([400, expect.stringContaining("idempotency_key_required")]);
  });

  test("is refused in another mode than it was made in", async () => {
    const reply = await as("owner").post(path, { _key: "other-mode", _mode: "sandbox" });
    expect(reply.status).toBe(400);
    expect(reply.text).toContain("This form was opened in sandbox, and you are in live now");
  });

  test("is refused twice as different things", async () => {
    const { people } = await service.organisation();
    const browser = openConsole(service, people.owner.as);
    const first = await browser.post(path, { _key: "k", _mode: "live", one: "1" });
    // Where it ended the sign-in, there is nobody to send it twice.
    if (first.status === 303 && !first.to?.startsWith("/console/sign-in")) {
      const reply = await browser.post(path, { _key: "k", _mode: "live", one: "2" });
      expect([reply.status, reply.text]).toEqual([409, expect.stringContaining("sent already")]);
    }
  });
});

describe("an answer with a secret", () => {
  const SECRET = { text: "hf_test_secret" };
  const send = (submissions: ReturnType<typeof createSubmissions>, key: string, now: number) =>
    submissions.once("sign-in", { key, fingerprint: "f", now }, async () => SECRET, {
      isDone: () => true,
      hasSecret: () => true,
    });

  test("is given to a second click, and a minute later to nobody", async () => {
    const submissions = createSubmissions();
    expect(await Promise.all([send(submissions, "k", 0), send(submissions, "k", 0)])).toEqual([
      SECRET,
      SECRET,
    ]);
    expect(await send(submissions, "k", 59_999)).toBe(SECRET);
    expect(await send(submissions, "k", 60_000)).toMatchObject({ refused: "idempotency_key_reused" });
    // Another form is another secret.
    expect(await send(submissions, "other", 60_000)).toBe(SECRET);
  });

  test("is forgotten a minute later by any form that is sent", async () => {
    const submissions = createSubmissions();
    for (const key of ["first", "second"]) await send(submissions, key, 0);
    await send(submissions, "third", 60_000);
    for (const key of ["first", "second"]) expect(await send(submissions, key, 0)).not.toBe(SECRET as never);
  });
});

describe("signing in", () => {
  test("the front door leads to the console, and that to the sign-in", async () => {
    const stranger = openConsole(service, {});
    expect((await stranger.get("/")).to).toBe("/console");
    expect((await stranger.get("/console")).to).toBe("/console/sign-in?next=%2Fconsole");
  });

  test("a password leads to where one wanted to go, and the cookie is that of the API", async () => {
    const stranger = openConsole(service, {});
    const fields = await stranger.formOn("/console/sign-in?next=%2Fconsole%2Fcomponents", "/console/sign-in");
    const { email } = home.people.viewer;
    const reply = await stranger.post("/console/sign-in", {
      ...fields,
      email,
      password: PASSWORD,
      mode: "sandbox",
    });
    expect([reply.status, reply.to]).toEqual([303, "/console/components"]);
    const cookie = reply.headers.get("set-cookie") ?? "";
    expect(cookie).toMatch(/^service_session=.*HttpOnly/i);
    const { text } = await openConsole(service, { Cookie: cookie.split(";")[0]! }).get("/console");
    expect(text).toContain("SANDBOX No money here is real.");
  });

  test("a wrong password is said beside the form, and the e-mail stays", async () => {
    const stranger = openConsole(service, {});
    const { email } = home.people.viewer;
    const reply = await stranger.post("/console/sign-in", { email, password: "wrong" });
    expect([reply.status, reply.headers.get("set-cookie")]).toEqual([401, null]);
    expect(reply.text).toContain("The e-mail or the password is wrong.");
    expect(reply.html).toContain(`value="${email}"`);
  });

  test.each(["https://evil.example", "//evil.example", "/consolex", "/console\\evil", "javascript:alert(1)"])(
    "does not lead to %s",
    async (next) => {
      const { people } = home;
      const { to } = await openConsole(service, people.viewer.as).get(
        `/console/sign-in?next=${encodeURIComponent(next)}`,
      );
      expect(to).toBe("/console");
    },
  );

  test("signing out ends the sign-in", async () => {
    const cookie = await home.signIn(home.people.viewer);
    const browser = openConsole(service, cookie);
    const fields = await browser.formOn("/console", "/console/sign-out");
    expect((await browser.post("/console/sign-out", fields)).to).toBe("/console/sign-in");
    expect((await browser.get("/console")).to).toContain("/console/sign-in");
  });
});

describe("the frame", () => {
  test("the switch moves the sign-in to the other mode, and SANDBOX is on every page there", async () => {
    const browser = openConsole(service, await home.signIn(home.people.viewer));
    expect((await browser.get("/console")).text).not.toContain("SANDBOX");
    const fields = await browser.formOn("/console", "/console/mode");
    const switched = { ...fields, back: "/console/warrants/wrt_1", mode: "sandbox" };
    expect((await browser.post("/console/mode", switched)).to).toBe("/console/warrants");
    for (const path of ["/console", "/console/components"])
      expect((await browser.get(path)).text).toContain("SANDBOX");
  });

  test("a form that is sent twice does one thing, and has one answer", async () => {
    const browser = openConsole(service, await home.signIn(home.people.viewer));
    const fields = { ...(await browser.formOn("/console", "/console/mode")), mode: "live" };
    const [first, second] = await Promise.all([
      browser.post("/console/mode", fields),
      browser.post("/console/mode", fields),
    ]);
    expect([first.status, second.status, second.to]).toEqual([303, 303, first.to]);
  });

  test("has no script or style of its own, and may load ours only", async () => {
    const { html, headers } = await as("owner").get("/console/components");
    const policy = (headers.get("content-security-policy") ?? "").split("; ").sort();
    expect(policy).toEqual([
      "base-uri 'none'",
      "connect-src 'self'",
      "default-src 'none'",
      "form-action 'self'",
      "frame-ancestors 'none'",
      "img-src 'self'",
      "script-src 'self'",
      "style-src 'self'",
    ]);
    expect(html).toStartWith("<!doctype html>");
    expect(html).not.toMatch(/<script>|<style|\sstyle=|\son[a-z]+=|https?:\/\/(?!localhost)/);
    expect(headers.get("referrer-policy")).toBe("same-origin");
    expect(headers.get("cache-control")).toBe("no-store");
  });

  test("its files are there for good, and all of a page is less than 200 kB", async () => {
    const { html } = await as("owner").get("/console/components");
    const files = [...html.matchAll(/(?:href|src)="(\/console\/assets\/[^"]+)"/g)].map(
      ([, path = ""]) => path,
    );
    expect(new Set(files).size).toBe(4);
    let bytes = html.length;
    for (const path of new Set(files)) {
      const response = await fetch(service.url + path);
      expect([path, response.status, response.headers.get("cache-control")]).toEqual([
        path,
        200,
        "public, max-age=31536000, immutable",
      ]);
      bytes += (await response.bytes()).length;
    }
    expect(bytes).toBeLessThan(200_000);
  });

  test("text that others wrote is no markup", async () => {
    const { email } = home.people.owner;
    const stranger = openConsole(service, {});
    const reply = await stranger.post("/console/sign-in", { email: `"><script>${email}`, password: "x" });
    expect(reply.html).not.toContain("<script>");
  });

  test("a path that is not there is a page that leads back", async () => {
    const reply = await as("viewer").get("/console/nowhere");
    expect([reply.status, reply.headers.get("content-type")]).toEqual([404, "text/html; charset=utf-8"]);
    expect(reply.html).toContain('href="/console"');
  });

  test("the colours that one chooses stay", async () => {
    const browser = as("viewer");
    const chosen = await browser.post("/console/theme", { theme: "dark", back: "/console" });
    const cookie = chosen.headers.get("set-cookie")?.split(";")[0];
    const { html } = await browser.get("/console", { Cookie: `${home.people.viewer.as.Cookie}; ${cookie}` });
    expect(html).toContain('data-theme="dark"');
  });

  test("the kill switch shows on every page", async () => {
    const { id, people } = await service.organisation();
    must(await setKillSwitch(service.ctx, MACHINE, { organisation_id: id, on: true }));
    expect((await openConsole(service, people.viewer.as).get("/console")).text).toContain(
      "The kill switch is on",
    );
  });

  test("the page of components is there from the source only", () => {
    expect(consoleRoutes(false).map(({ path }) => path)).not.toContain("/console/components");
  });
});
