import { SMTPServer, type SMTPServerOptions } from "smtp-server";
import { CERTIFICATE, PRIVATE_KEY } from "./tls.ts";

/** A mail as the server received it. */
export type ReceivedMail = {
  readonly to: readonly string[];
  readonly from: string;
  readonly source: string;
  /** Whether it came over TLS, and as whom the client had signed in. */
  readonly isSecure: boolean;
  readonly user: string | null;
};

/** A real mail server on this machine, with the certificate of example.test. */
export async function startMailServer(options: SMTPServerOptions = {}) {
  const received: ReceivedMail[] = [];
  const server = new SMTPServer({
    ...{ key: PRIVATE_KEY, cert: CERTIFICATE, authOptional: true, logger: false, disableReverseLookup: true },
    onAuth({ username, password }, _, done) {
      if (password === "open sesame") done(null, { user: username ?? "" });
      else done(new Error("Invalid username or password"));
    },
    onData(stream, session, done) {
      const chunks: Buffer[] = [];
      stream.on("data", (chunk: Buffer) => chunks.push(chunk));
      stream.on("end", () => {
        const { mailFrom, rcptTo } = session.envelope;
        received.push({
          to: rcptTo.map(({ address }) => address),
          from: mailFrom === false ? "" : mailFrom.address,
          source: Buffer.concat(chunks).toString(),
          isSecure: session.secure,
          user: typeof session.user === "string" ? session.user : null,
        });
        done(null, "kept as 1");
      });
    },
    ...options,
  });
  // A client that goes away in the middle is none of the test's business.
  server.on("error", () => {});
  const listening = Promise.withResolvers<void>();
  server.listen(0, "127.0.0.1", listening.resolve);
  await listening.promise;
  const address = server.server.address();
  if (address === null || typeof address === "string") throw new Error("the mail server has no port");
  return {
    received,
    port: address.port,
    close(): Promise<void> {
      const closed = Promise.withResolvers<void>();
      server.close(closed.resolve);
      return closed.promise;
    },
  };
}
