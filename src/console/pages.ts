import style from "./account.css" with { type: "text" };
import script from "./account.js" with { type: "text" };
import { receiptAssets } from "./receipt/page.ts";

/** The pages that people see, by path. Markup, script and stylesheets all come from the service itself. */
export type Page = { readonly type: "text/html" | "text/css" | "text/javascript"; readonly body: string };

const { escapeHTML } = Bun;

/** @param baseUrl where people reach the service: passkeys and cookies work there and nowhere else */
export const consolePages = (baseUrl: string): Readonly<Record<string, Page>> => ({
  "/account": { type: "text/html", body: page(baseUrl, "/account", "Your account", ACCOUNT) },
  "/reset-password": {
    type: "text/html",
    body: page(baseUrl, "/reset-password", "Choose a new password", RESET_PASSWORD),
  },
  "/console/account.js": { type: "text/javascript", body: script },
  "/console/account.css": { type: "text/css", body: style },
  ...receiptAssets,
});

const page = (baseUrl: string, path: string, title: string, content: string): string => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHTML(title)} · Holdfast</title>
<link rel="canonical" href="${escapeHTML(`${new URL(baseUrl).origin}${path}`)}">
<link rel="stylesheet" href="/docs/style.css">
<link rel="stylesheet" href="/console/account.css">
<script type="module" src="/console/account.js"></script>
</head>
<body>
<header><nav><a href="/console">Holdfast</a></nav><h1>${escapeHTML(title)}</h1></header>
<main>
<noscript><p class="message wrong">This page needs JavaScript.</p></noscript>
<p class="message" id="message" role="status" hidden></p>
<p class="message wrong" id="problem" role="alert" hidden></p>
${content}
</main>
</body>
</html>
`;

const ACCOUNT = `<section id="signed-out" hidden>
<form id="sign-in">
<label>E-mail <input name="email" type="email" autocomplete="username" required></label>
<label>Password <input name="password" type="password" autocomplete="current-password" required></label>
<label>Mode <select name="mode"><option value="live">live</option><option value="sandbox">sandbox</option></select></label>
<p><button>Sign in</button> <button type="button" id="sign-in-by-passkey">Sign in with a passkey</button></p>
</form>
</section>
<section id="signed-in" hidden>
<p id="who"></p>
<p class="message" id="owed" hidden></p>
<p id="prove" hidden><button type="button" id="prove-passkey">Use your passkey</button></p>
<div id="own-passkeys">
<h2 id="passkeys-title">Passkeys</h2>
<p>A passkey signs you in, and signs what you decide above the organisation's threshold.</p>
<ul id="passkeys" aria-labelledby="passkeys-title"></ul>
<p id="no-passkeys">You have none yet.</p>
<form id="add-passkey">
<label>Name <input name="name" maxlength="200" placeholder="Laptop" autocomplete="off" required></label>
<label>Your password <input name="password" type="password" autocomplete="current-password" required></label>
<p><button>Add a passkey</button></p>
</form>
</div>
<div id="own-password">
<h2>Password</h2>
<form id="change-password">
<label>Current password <input name="current_password" type="password" autocomplete="current-password" required></label>
<label>New password <input name="new_password" type="password" autocomplete="new-password" minlength="12" maxlength="256" required></label>
<p><button>Change the password</button></p>
</form>
<h2 id="sign-ins-title">Where you are signed in</h2>
<p>End what you do not know, and change your password then.</p>
<ul id="sign-ins" aria-labelledby="sign-ins-title"></ul>
</div>
<h2>Sign out</h2>
<p><button type="button" id="sign-out">Sign out here</button> <button type="button" id="sign-out-everywhere">Sign out everywhere</button></p>
</section>
<dialog id="remove-passkey-dialog" aria-labelledby="remove-passkey-title">
<form id="remove-passkey">
<p id="remove-passkey-title"></p>
<label>Your password <input name="password" type="password" autocomplete="current-password" required></label>
<p><button>Remove it</button> <button type="button" id="keep-passkey">Keep it</button></p>
</form>
</dialog>`;

const RESET_PASSWORD = `<form id="reset-password" hidden>
<p>At least 12 characters, and hard to guess: several words that have nothing to do with you or each other. You are signed out everywhere then.</p>
<label>New password <input name="new_password" type="password" autocomplete="new-password" minlength="12" maxlength="256" required></label>
<p><button>Set the password</button></p>
</form>
<p><a href="/console/sign-in">Sign in</a></p>`;
