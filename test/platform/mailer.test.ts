import { afterEach, expect, test } from "bun:test";
import { createServer } from "node:net";
import type { MailServer } from "../../src/core/mail-settings.ts";
import { createMailer } from "../../src/platform/mailer.ts";
import { startMailServer } from "../support/mail-server.ts";
import { CERTIFICATE_AUTHORITY } from "../support/tls.ts";

/** Mail through a real server (docs/notices, "Notices"). */

type Running = Awaited<ReturnType<typeof startMailServer>>;
let server: Running;
afterEach(() => server?.close());

const MAIL = { id: "ntc_1", to: "ada@example.com", subject: "50.00 USDC waits", text: "Łódź ☂\n.\nend\n" };

const mailer = (given: Partial<MailServer>, ca: string | null = CERTIFICATE_AUTHORITY) =>
  createMailer({
    server: {
      ...{ host: "example.test", port: server.port, tls: "starttls", user: null, password: null },
      ...given,
    },
    ...{ from: "holdfast@example.test", address: "127.0.0.1", timeoutMs: 5_000 },
    ...(ca !== null && { ca }),
  });

test("goes out over STARTTLS, as the user, with what a mailbox needs", async () => {
  server = await startMailServer();
  const result = await mailer({ user: "me", password: "open sesame" }).send(MAIL);
  expect(result).toEqual({ outcome: "delivered", answer: "250 kept as 1", durationMs: expect.any(Number) });
  const [one] = server.received;
  expect(one).toMatchObject({
    to: ["ada@example.com"],
    from: "holdfast@example.test",
    isSecure: true,
    user: "me",
  });
  expect(one!.source).toContain("Message-ID: <ntc_1@example.test>");
  expect(one!.source).toContain("Subject: 50.00 USDC waits");
  expect(one!.source).toContain("Auto-Submitted: auto-generated");
});

test("goes out over TLS from the start", async () => {
  server = await startMailServer({ secure: true });
  const result = await mailer({ tls: "from the start" }).send(MAIL);
  expect([result.outcome, server.received.length, server.received[0]?.isSecure]).toEqual([
    "delivered",
    1,
    true,
  ]);
});

test("a server whose certificate nobody vouches for gets nothing", async () => {
  server = await startMailServer();
  expect(await mailer({}, null).send(MAIL)).toMatchObject({ outcome: "failed" });
  expect(await mailer({ host: "other.test" }).send(MAIL)).toMatchObject({ outcome: "failed" });
  expect(server.received).toEqual([]);
});

test("a server that offers no STARTTLS gets nothing, not even the password", async () => {
  const tried: unknown[] = [];
  server = await startMailServer({
    hideSTARTTLS: true,
    disabledCommands: ["STARTTLS"],
    allowInsecureAuth: true,
    onAuth(auth, _, done) {
      tried.push(auth);
      done(null, { user: "me" });
    },
  });
  const result = await mailer({ user: "me", password: "open sesame" }).send(MAIL);
  expect([result.outcome, tried, server.received]).toEqual(["failed", [], []]);
});

test("a receiver that is refused for good is not tried again; one that is refused for now is", async () => {
  for (const [responseCode, outcome] of [
    [550, "never"],
    [450, "failed"],
  ] as const) {
    await server?.close();
    server = await startMailServer({
      onRcptTo: (_, __, done) => done(Object.assign(new Error("no such box"), { responseCode })),
    });
    const result = await mailer({}).send(MAIL);
    expect(result).toMatchObject({ outcome, answer: `${responseCode} no such box` });
  }
});

test("what a mail server says has no U+0000 as it is kept: PostgreSQL cannot keep one", async () => {
  const strange = createServer((socket) => void socket.end("554 not\0here\r\n"));
  await new Promise<void>((resolve) => strange.listen(0, "127.0.0.1", resolve));
  const { port } = strange.address() as { port: number };
  expect(await mailer({ port }).send(MAIL)).toMatchObject({
    answer: expect.stringContaining("not\ufffdhere"),
  });
  strange.close();
});

test("a wrong password may be corrected, so it is tried again", async () => {
  server = await startMailServer();
  const result = await mailer({ user: "me", password: "wrong" }).send(MAIL);
  expect([result.outcome, server.received]).toEqual(["failed", []]);
});

test("what looks like two receivers is one or none, and a subject with a line break is one header", async () => {
  server = await startMailServer();
  for (const to of ["ada@example.com, eve@example.com", "ada@example.com>\r\nRCPT TO:<eve@example.com"])
    await mailer({}).send({ ...MAIL, to });
  expect(server.received.flatMap(({ to }) => to).filter((to) => /^eve@/.test(to))).toEqual([]);
  await mailer({}).send({ ...MAIL, subject: "one\r\nBcc: eve@example.com" });
  expect(server.received.at(-1)?.to).toEqual(["ada@example.com"]);
  expect(server.received.at(-1)?.source).not.toMatch(/^Bcc:/m);
});
