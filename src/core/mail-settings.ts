import { isLoopback, type Parse } from "./setting-values.ts";

/** The mail server that notices are sent through (docs/configuration, "Configuration"). */
export type MailServer = {
  readonly host: string;
  readonly port: number;
  /** `from the start`, or by STARTTLS, which must succeed; `none` only for a server on this machine. */
  readonly tls: "from the start" | "starttls" | "none";
  readonly user: string | null;
  readonly password: string | null;
};

export const parseMailServer: Parse<MailServer> = (text) => {
  const problem = {
    problem:
      "must be smtps://USER:PASSWORD@HOST:465 or smtp://USER:PASSWORD@HOST:587, user and password with % escapes, and nothing after the port",
  };
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || !["smtp:", "smtps:"].includes(url.protocol)) return problem;
  if (url.hostname === "" || !["", "/"].includes(url.pathname) || url.search !== "" || url.hash !== "")
    return problem;
  const isSecure = url.protocol === "smtps:";
  try {
    const [user, password] = [url.username, url.password].map(decodeURIComponent);
    return {
      host: url.hostname.replace(/^\[(.*)\]$/, "$1"),
      port: url.port === "" ? (isSecure ? 465 : 587) : Number(url.port),
      tls: isSecure ? "from the start" : isLoopback(url.hostname) ? "none" : "starttls",
      user: user || null,
      password: password || null,
    };
  } catch {
    return problem;
  }
};

/** The address that mail is sent from. */
export const parseMailFrom: Parse<string> = (text) =>
  /^[^\s@<>,;"]{1,64}@[^\s@<>,;"]{1,253}$/.test(text)
    ? text
    : { problem: "must be an e-mail address, such as holdfast@example.org" };
