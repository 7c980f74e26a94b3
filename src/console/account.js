/** /account and /reset-password. It speaks to the service as any program would, and keeps nothing. */

const byId = (id) => document.getElementById(id);

function show(id, text) {
  const element = byId(id);
  element.textContent = text;
  element.hidden = text === "";
  if (text !== "") element.scrollIntoView({ block: "nearest" });
}

/** Sends JSON and gives the answer's JSON; what the service refuses is an error with its message. */
async function send(method, path, body) {
  const response = await fetch(path, {
    method,
    ...(body && { headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) }),
  });
  const answer = response.status === 204 ? null : await response.json();
  if (response.ok) return answer;
  throw Object.assign(new Error(answer.error.message), { status: response.status });
}

/** What went wrong, in words that say what to do. */
function wordsFor(error) {
  switch (error.name) {
    case "NotAllowedError":
      return "The passkey was not used: it was cancelled, or it took too long. Try again.";
    case "InvalidStateError":
      return "This device has a passkey of yours already.";
    case "NotSupportedError":
      return "This device cannot make a passkey with a PIN or a fingerprint. Try another one.";
    case "TypeError":
      return "The service did not answer. Try again.";
    default:
      return error.message;
  }
}

/** Does what a form or a button asks, one thing at a time, and shows how it went. */
async function attempt(element, action) {
  const controls = element.matches("form") ? element.querySelectorAll("button") : [element];
  show("message", "");
  show("problem", "");
  for (const control of controls) control.disabled = true;
  try {
    show("message", (await action()) ?? "");
    if (element.matches("form")) element.reset();
  } catch (error) {
    show("problem", wordsFor(error));
  } finally {
    for (const control of controls) control.disabled = false;
  }
}

function onSubmit(id, action) {
  const form = byId(id);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    void attempt(form, () => action(Object.fromEntries(new FormData(form))));
  });
}

function onClick(id, action) {
  const button = byId(id);
  button.addEventListener("click", () => attempt(button, action));
}

/** Passkeys and cookies belong to one address of the service. */
function refuseOtherAddress() {
  const canonical = document.querySelector("link[rel=canonical]").href;
  if (new URL(canonical).origin === location.origin) return false;
  show("problem", `Open this page at ${canonical}: sign-in works there only.`);
  return true;
}

function needPasskeys() {
  if (globalThis.PublicKeyCredential?.parseCreationOptionsFromJSON) return;
  throw new Error(
    "This browser knows no passkeys, or is too old for them. Use the password, or a newer browser.",
  );
}

async function signInByPasskey(mode) {
  needPasskeys();
  const options = await send("POST", "/auth/passkey/sign-in/options", {});
  const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(options);
  const credential = await navigator.credentials.get({ publicKey });
  await send("POST", "/auth/passkey/sign-in", { response: credential.toJSON(), mode });
  await showAccount();
}

async function addPasskey({ name, password }) {
  needPasskeys();
  const options = await send("POST", "/auth/passkeys/options", { password });
  const publicKey = PublicKeyCredential.parseCreationOptionsFromJSON(options);
  const credential = await navigator.credentials.create({ publicKey });
  const passkey = await send("POST", "/auth/passkeys", { name, response: credential.toJSON() });
  await showAccount();
  return passkey.counts_for_threshold
    ? `“${passkey.name}” is registered.`
    : `“${passkey.name}” is registered for sign-in. It does not count for the threshold: your password was reset less than 24 hours ago. Add it again after that.`;
}

function passkeyItem({ id, name, counts_for_threshold, created_at, last_used_at }) {
  const day = (time) => new Date(time).toLocaleDateString();
  const item = document.createElement("li");
  const about = document.createElement("span");
  const details = document.createElement("small");
  const button = document.createElement("button");
  about.textContent = name;
  details.textContent = [
    `added ${day(created_at)}`,
    last_used_at === null ? "not used yet" : `last used ${day(last_used_at)}`,
    ...(counts_for_threshold ? [] : ["does not count for the threshold"]),
  ].join(" · ");
  button.type = "button";
  button.textContent = "Remove";
  button.setAttribute("aria-label", `Remove ${name}`);
  button.addEventListener("click", () => {
    removed = { id, name };
    byId("remove-passkey-title").textContent = `Remove the passkey “${name}”? It signs you in no more.`;
    byId("remove-passkey").reset();
    byId("remove-passkey-dialog").showModal();
  });
  about.append(details);
  item.append(about, button);
  return item;
}

/** The passkey that the open dialog asks about. */
let removed = null;

async function removePasskey({ password }) {
  const { id, name } = removed;
  byId("remove-passkey-dialog").close();
  await send("POST", `/auth/passkeys/${encodeURIComponent(id)}/remove`, { password });
  await showPasskeys();
  return `“${name}” is removed.`;
}

function listPasskeys(passkeys) {
  byId("passkeys").replaceChildren(...passkeys.map(passkeyItem));
  byId("no-passkeys").hidden = passkeys.length > 0;
}

async function showPasskeys() {
  const { data } = await send("GET", "/auth/passkeys");
  listPasskeys(data);
}

/** What to do first, where the organisation asks for a passkey that this sign-in has not proved. */
const OWED = {
  passkey: "asks you for your passkey beside the password. Until you use it, nothing else is open to you.",
  first_passkey:
    "asks you for a passkey beside the password, and you have none yet. Add one now; until then nothing else is open to you.",
};
let mode = "live";

function showOwed(owed, organisation) {
  byId("owed").textContent = owed === null ? "" : `${organisation.name} ${OWED[owed]}`;
  byId("owed").hidden = owed === null;
  byId("prove").hidden = owed !== "passkey";
  byId("own-passkeys").hidden = owed === "passkey";
  byId("own-password").hidden = owed !== null;
  byId("sign-out-everywhere").hidden = owed !== null;
}

function signInItem({ id, mode, address, agent, current, created_at, last_used_at, expires_at }) {
  const time = (at) => new Date(at).toLocaleString();
  const item = document.createElement("li");
  const about = document.createElement("span");
  const details = document.createElement("small");
  about.textContent = `${agent || "a program without a name"}${current ? " (this one)" : ""}`;
  details.textContent = [
    `from ${address ?? "an address that is not known"}`,
    mode,
    `since ${time(created_at)}`,
    `last used ${time(last_used_at)}`,
    `until ${time(expires_at)}`,
  ].join(" · ");
  about.append(details);
  item.append(about);
  if (!current) item.append(endButton(id, about.firstChild.textContent));
  return item;
}

function endButton(id, name) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = "End";
  button.setAttribute("aria-label", `End the sign-in by ${name}`);
  button.addEventListener("click", () =>
    attempt(button, async () => {
      await send("DELETE", `/auth/sessions/${encodeURIComponent(id)}`);
      await showSignIns();
      return "That sign-in is ended.";
    }),
  );
  return button;
}

async function showSignIns() {
  const { data } = await send("GET", "/auth/sessions");
  byId("sign-ins").replaceChildren(...data.map(signInItem));
}

/** The account where somebody is signed in, else the sign-in. */
async function showAccount() {
  const session = await send("GET", "/auth/session").catch((error) => {
    if (error.status === 401) return null;
    throw error;
  });
  if (session) {
    const { user, organisation, second_factor_owed: owed } = session;
    mode = session.mode;
    byId("who").textContent =
      `${user.name} (${user.email}), ${user.role} of ${organisation.name}, in ${mode}.`;
    showOwed(owed, organisation);
    if (owed === null) {
      await showPasskeys();
      await showSignIns();
    } else {
      listPasskeys([]);
      byId("sign-ins").replaceChildren();
    }
  }
  byId("signed-out").hidden = session !== null;
  byId("signed-in").hidden = session === null;
}

function startAccount() {
  onSubmit("sign-in", async (fields) => {
    await send("POST", "/auth/session", fields);
    await showAccount();
  });
  onClick("sign-in-by-passkey", () => signInByPasskey(byId("sign-in").elements.mode.value));
  onClick("prove-passkey", () => signInByPasskey(mode));
  onSubmit("add-passkey", addPasskey);
  onSubmit("remove-passkey", removePasskey);
  onClick("keep-passkey", async () => byId("remove-passkey-dialog").close());
  onSubmit("change-password", async (fields) => {
    await send("POST", "/auth/password", fields);
    await showSignIns();
    return "The password is changed; everywhere else you are signed out.";
  });
  onClick("sign-out", async () => {
    await send("DELETE", "/auth/session");
    await showAccount();
    return "You are signed out.";
  });
  onClick("sign-out-everywhere", async () => {
    await send("DELETE", "/auth/sessions");
    await showAccount();
    return "You are signed out everywhere.";
  });
  showAccount().catch((error) => show("problem", wordsFor(error)));
}

/** The link's token stands after the #, where it is neither sent nor logged; it goes from the address bar too. */
function startResetPassword() {
  const token = location.hash.slice(1);
  if (token === "") {
    show(
      "problem",
      "This page needs the whole link that an admin gave you. Open it once more, or ask for a new one.",
    );
    return;
  }
  history.replaceState(null, "", location.pathname);
  const form = byId("reset-password");
  form.hidden = false;
  onSubmit("reset-password", async ({ new_password }) => {
    await send("POST", "/auth/password/reset", { token, new_password });
    form.hidden = true;
    return "Your password is set. Sign in with it.";
  });
}

if (!refuseOtherAddress()) {
  if (byId("reset-password")) startResetPassword();
  else startAccount();
}
