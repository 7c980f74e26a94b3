/** The console's script. Every page works without it: it adds times in the reader's zone, passkeys, dialogs and keys. */

const webauthn = globalThis.PublicKeyCredential;

/** Sends JSON and gives the answer's JSON; what the service refuses is an error with its message. */
async function send(path, body) {
  const response = await fetch(path, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });
  const answer = await response.json();
  if (response.ok) return answer;
  throw Object.assign(new Error(answer.error.message), { code: answer.error.code });
}

function wordsFor(error) {
  if (error.name === "NotAllowedError") {
    return "The passkey was not used: it was cancelled, or it took too long. Try again.";
  }
  if (error.name === "InvalidStateError") return "This device has a passkey of yours already.";
  if (error.name === "NotSupportedError") {
    return "This device cannot make a passkey with a PIN or a fingerprint. Try another one.";
  }
  return error.name === "TypeError" ? "The service did not answer. Try again." : error.message;
}

function showProblem(near, text) {
  const problem = near.querySelector("[data-problem]") ?? document.querySelector("[data-problem]");
  if (!problem) return;
  problem.textContent = text;
  problem.hidden = text === "";
}

/** Times in the zone of the reader. UTC stays in the title. */
const local = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });

function enhance(root) {
  for (const time of root.querySelectorAll("time[datetime]")) {
    time.textContent = local.format(new Date(time.dateTime));
  }
  for (const input of root.querySelectorAll("[data-split]")) showSplit(input);
  for (const button of root.querySelectorAll("[data-copy]")) button.hidden = !navigator.clipboard;
  for (const button of root.querySelectorAll("[data-passkey-sign-in]")) {
    button.hidden = !webauthn?.parseRequestOptionsFromJSON;
  }
  for (const form of root.querySelectorAll("[data-add-passkey]")) {
    form.hidden = !webauthn?.parseCreationOptionsFromJSON;
  }
  for (const form of root.querySelectorAll("[data-subscribe]")) void showDevices(form);
  for (const input of root.querySelectorAll("[data-from-hash]")) takeCode(input);
  for (const input of root.querySelectorAll("[data-deadline]")) {
    const zone = input.form.elements.zone_minutes;
    if (zone) zone.value = String(-new Date().getTimezoneOffset());
  }
}

/** `8400000` of USDC → 8.40 USDC, as the service writes it. */
function display(amount, asset, decimals) {
  if (decimals === 0) return `${amount}\u00a0${asset}`;
  const digits = amount.toString().padStart(decimals + 1, "0");
  const whole = digits.slice(0, -decimals).replace(/\B(?=(\d{3})+$)/g, " ");
  const fraction = digits.slice(-decimals).replace(/0+$/, "").padEnd(2, "0");
  return `${whole}.${fraction}\u00a0${asset}`;
}

/** Both sides of a partial release, in money. */
function showSplit(input) {
  const { amount, asset, decimals } = input.dataset;
  const bps = BigInt(Math.round(Number(input.value || 0) * 100));
  const paid = (BigInt(amount) * bps) / 10000n;
  const root = input.closest("[data-split-root]");
  for (const other of root.querySelectorAll("[data-split]")) if (other !== input) other.value = input.value;
  const show = (name, value) => {
    for (const place of root.querySelectorAll(`[data-${name}]`)) {
      place.textContent = display(value, asset, Number(decimals));
    }
  };
  show("paid", paid);
  show("returned", BigInt(amount) - paid);
}

/** The code of a link stands after the #, where it is neither sent nor logged; it goes from the address bar too. */
function takeCode(input) {
  const code = location.hash.slice(1);
  if (code !== "") {
    history.replaceState(null, "", location.pathname);
    input.value = code;
  }
  input.closest("[data-code]").hidden = input.value !== "";
  if (code !== "" && input.form.matches("[data-send-at-once]")) input.form.requestSubmit();
}

/** Registers a passkey of this person, and shows the page again, which then has it. */
async function addPasskey(form) {
  const { passkey_name: name, passkey_password: password } = Object.fromEntries(new FormData(form));
  const options = await send("/auth/passkeys/options", { password });
  const publicKey = webauthn.parseCreationOptionsFromJSON(options);
  const credential = await navigator.credentials.create({ publicKey });
  await send("/auth/passkeys", { name, response: credential.toJSON() });
  location.reload();
}

const canBeNotified =
  "serviceWorker" in navigator && "PushManager" in globalThis && "Notification" in globalThis;

/** Where this browser is in the list of devices, says so; where it can be added, shows the form. */
async function showDevices(form) {
  document.querySelector("[data-no-push]").hidden = canBeNotified;
  if (!canBeNotified) return;
  const registration = await navigator.serviceWorker.getRegistration(form.dataset.worker);
  const own = await placeOf(await registration?.pushManager.getSubscription());
  if (own) own.querySelector("[data-this-device]").hidden = false;
  form.hidden = own !== null;
}

/** The entry of a subscription in the list of devices; null where it is not there. */
async function placeOf(subscription) {
  if (!subscription) return null;
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(subscription.endpoint));
  const hex = [...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return document.querySelector(`[data-device="${hex}"]`);
}

/** Asks whether this browser may show notices, and sends the form with what its push service gives. */
async function subscribe(form) {
  if ((await Notification.requestPermission()) !== "granted") {
    throw new Error("This browser does not let this page notify you. Allow it for this page, and try again.");
  }
  await navigator.serviceWorker.register(form.dataset.worker);
  const { pushManager } = await navigator.serviceWorker.ready;
  const known = await pushManager.getSubscription();
  // It is another person's, or was made for another key.
  if (known && !(await placeOf(known))) await known.unsubscribe();
  const options = { userVisibleOnly: true, applicationServerKey: form.dataset.subscribe };
  const subscription = await pushManager.subscribe(options).catch(({ message }) => {
    throw new Error(`The push service of this browser does not answer: ${message}`);
  });
  const { endpoint, keys } = subscription.toJSON();
  form.elements.endpoint.value = endpoint;
  form.elements.p256dh.value = keys.p256dh;
  form.elements.auth.value = keys.auth;
  form.requestSubmit();
}

async function signInByPasskey(form) {
  const options = await send("/auth/passkey/sign-in/options", {});
  const publicKey = webauthn.parseRequestOptionsFromJSON(options);
  const credential = await navigator.credentials.get({ publicKey });
  await send("/auth/passkey/sign-in", {
    response: credential.toJSON(),
    mode: form.elements.mode.value,
  });
  location.assign(form.elements.next.value);
}

/** What a form decides, as a passkey signs it. */
function decisionOf(form) {
  const data = new FormData(form);
  const decision = data.get("decision");
  return {
    warrant_id: form.dataset.warrant,
    version: Number(data.get("version")),
    decision,
    ...(decision === "partial_release" && { released_bps: Math.round(Number(data.get("share")) * 100) }),
  };
}

/** What a form asks a passkey to sign: the fields that it names, or a decision on a warrant. */
function signedBy(form) {
  const { signs } = form.dataset;
  if (signs === undefined) return decisionOf(form);
  return Object.fromEntries([...new FormData(form)].filter(([name]) => signs.split(" ").includes(name)));
}

/** Signs what is above the threshold with the person's passkey, and sends the form with the signature's token. */
async function signDecision(form, button) {
  const options = await send(form.dataset.signed, signedBy(form)).catch((error) => {
    // It is not any more what the page shows. Without a signature the form is refused, and shown as it is now.
    if (error.code === "version_conflict") form.submit();
    throw error;
  });
  const publicKey = webauthn.parseRequestOptionsFromJSON(options);
  const credential = await navigator.credentials.get({ publicKey });
  const { token } = await send("/auth/passkey/assertion", { response: credential.toJSON() });
  form.elements.passkey_token.value = token;
  form.requestSubmit(button);
}

async function attempt(near, action) {
  showProblem(near, "");
  try {
    await action();
  } catch (error) {
    showProblem(near, wordsFor(error));
  }
}

document.addEventListener("submit", (event) => {
  const form = event.target;
  const needsPasskey = form.matches("[data-signed]") && form.elements.passkey_token.value === "";
  if (needsPasskey && decisionOf(form).decision !== "dispute") {
    event.preventDefault();
    void attempt(form, () => signDecision(form, event.submitter));
    return;
  }
  if (form.matches("[data-subscribe]") && form.elements.endpoint.value === "") {
    event.preventDefault();
    void attempt(form, () => subscribe(form));
    return;
  }
  // What opens beside this page leaves the form to be gone on with.
  if (event.submitter?.formTarget === "_blank") return;
  if (form.matches("[data-add-passkey]")) {
    event.preventDefault();
    void attempt(form, () => addPasskey(form));
    return;
  }
  // A file leaves the page as it is, and another one may be wanted.
  if (form.matches("[data-saves]")) return;
  // The browser has read the fields by now. A second click sends nothing; where it did, the service would do nothing.
  setTimeout(() => {
    for (const button of form.querySelectorAll("button")) button.disabled = true;
  });
});

// A page that the browser kept may have buttons that were switched off when it was left.
addEventListener("pageshow", (event) => {
  if (!event.persisted) return;
  for (const button of document.querySelectorAll("form button:disabled")) button.disabled = false;
});

document.addEventListener("input", (event) => {
  if (event.target.matches("[data-split]")) showSplit(event.target);
});

document.addEventListener("click", (event) => {
  const opened = event.target.closest("summary")?.parentElement;
  if (opened) opened.dataset.opened = "";
  const signIn = event.target.closest("[data-passkey-sign-in]");
  if (signIn) void attempt(document, () => signInByPasskey(signIn.form));
  const copy = event.target.closest("[data-copy]");
  if (copy) void copySecret(copy);
  const opener = event.target.closest("a[data-dialog]");
  if (opener && !event.metaKey && !event.ctrlKey && !event.shiftKey) {
    event.preventDefault();
    openDialog(opener.href).catch(() => location.assign(opener.href));
  }
  if (event.target.closest("dialog [data-cancel]")) {
    event.preventDefault();
    event.target.closest("dialog").close();
  }
});

/** Copies what is in the field that a button names. */
async function copySecret(button) {
  const field = document.getElementById(button.dataset.copy);
  field.select();
  await navigator.clipboard.writeText(field.value);
  button.textContent = "Copied";
}

/** A confirmation is a page of its own; with the script it opens over the page that it is about. */
async function openDialog(href) {
  const response = await fetch(href);
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  const content = page.querySelector("#confirm");
  if (!content) throw new Error("no confirmation");
  const dialog = document.querySelector("#dialog");
  dialog.querySelector("#dialog-content").replaceChildren(content);
  enhance(dialog);
  dialog.showModal();
}

/** Keys of the inbox: j and k move, 1 to 4 choose. */
document.addEventListener("keydown", (event) => {
  if (event.target.matches("input:not([type=radio]), textarea, select") || event.metaKey || event.ctrlKey)
    return;
  const inbox = document.querySelector("[data-inbox]");
  if (!inbox) return;
  const links = [...inbox.querySelectorAll("a")];
  const at = links.findIndex((link) => link.ariaCurrent === "true");
  if (event.key === "j") links[at + 1]?.click();
  if (event.key === "k") links[at - 1]?.click();
  const choice = document.querySelectorAll("[data-choices] input[type=radio]")[Number(event.key) - 1];
  if (/^[1-4]$/.test(event.key) && choice) {
    choice.click();
    choice.focus();
  }
});

/** What is cut shows on hover. */
document.addEventListener("mouseover", ({ target }) => {
  const line = target.closest(".line");
  if (line && line.scrollWidth > line.clientWidth) line.title = line.textContent;
});

/** Passkeys and cookies belong to one address of the service. */
function refuseOtherAddress() {
  const canonical = document.querySelector("link[rel=canonical]")?.href;
  if (!canonical || new URL(canonical).origin === location.origin) return;
  showProblem(document, `Open this page at ${canonical}: sign-in works there only.`);
}

/**
 * What changes shows without a reload. One stream tells names: of topics, and ids. The parts of the page that have one of them in
 * `data-live` are asked for again. A page that nobody sees has no stream: a browser has few connections for all its windows.
 */
let position = document.body.dataset.position;
let stream = null;
let refreshing = Promise.resolve();
const ASK_AGAIN_MS = 10_000;

function listen() {
  if (stream || !position || document.hidden) return;
  const opened = new EventSource(`/console/events?after=${encodeURIComponent(position)}`);
  stream = opened;
  opened.addEventListener("changed", ({ data, lastEventId }) => {
    const { names } = JSON.parse(data);
    refreshing = refreshing.then(() => refresh(names, lastEventId)).catch(listenLater);
  });
  opened.addEventListener("end", ({ data }) => {
    hangUp();
    sayEnd(JSON.parse(data).why);
  });
  // Where it broke off the browser asks again. A refusal closes it for good.
  opened.addEventListener("error", () => {
    if (opened.readyState === EventSource.CLOSED && stream === opened) listenLater();
  });
}

function hangUp() {
  stream?.close();
  stream = null;
}

function listenLater() {
  hangUp();
  setTimeout(listen, ASK_AGAIN_MS);
}

/** A page that everybody may see. It stands in for one that answered a form and has no address: what is around pages is the same. */
const ANY_PAGE = "/console/account";

/** Asks for the page again, and takes over the parts that listen to one of the names; all of them where it is null. */
async function refresh(names, id) {
  const listens = ({ dataset }) =>
    names === null || dataset.live.split(" ").some((name) => names.includes(name));
  if ([...document.querySelectorAll("[data-live]")].some(listens)) {
    const own = await ask(location.href);
    const answer = own?.ok ? own : await ask(ANY_PAGE);
    if (answer === null) return sayEnd("signed_out");
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    await released();
    for (const part of document.querySelectorAll("[data-live]")) {
      const taken = fresh.getElementById(part.id);
      if (listens(part) && (taken || answer === own)) replacePart(part, taken);
    }
  }
  position = id;
}

/** Answers null where the sign-in has ended. */
async function ask(href) {
  const response = await fetch(href, { headers: { "Service-Refresh": "1" } });
  if (response.status === 429 || response.status >= 500) throw new Error("not now");
  return new URL(response.url).pathname === "/console/sign-in" ? null : response;
}

/** A click is a press and a release on the same element, so none is exchanged in between. */
const released = () =>
  document.querySelector("main :active") &&
  new Promise((resolve) => {
    for (const type of ["pointerup", "pointercancel", "keyup"])
      addEventListener(type, resolve, { once: true });
  });

/** What somebody is typing or reading stays, and they are told that it changed. */
function replacePart(part, fresh) {
  // A form that is on its way leads to the page anew; another one in its place could be sent as well.
  if (part.querySelector("form button:disabled") || (fresh && part.isEqualNode(fresh))) return;
  if (!fresh || isBusy(part)) return sayChanged(part);
  const focused = part.contains(document.activeElement) ? document.activeElement : null;
  const taken = document.importNode(fresh, true);
  part.replaceWith(taken);
  enhance(taken);
  globalThis.htmx?.process(taken);
  if (!focused) return;
  const isSame = ({ id, href }) => (focused.id ? id === focused.id : focused.href && href === focused.href);
  [...taken.querySelectorAll("a, button, [tabindex]")].find(isSame)?.focus({ preventScroll: true });
}

const isBusy = (part) =>
  part.querySelector("details[data-opened][open]") !== null ||
  [...part.querySelectorAll("input, textarea, select")].some(
    (field) => field.type !== "hidden" && (field === document.activeElement || isChanged(field)),
  );

function isChanged(field) {
  if (field.matches("[type=radio], [type=checkbox]")) return field.checked !== field.defaultChecked;
  if (!field.options) return field.value !== field.defaultValue;
  const chosen = [...field.options].findIndex(({ defaultSelected }) => defaultSelected);
  return field.selectedIndex !== Math.max(0, chosen);
}

/** A line with a link, said once. */
function sayBefore(place, id, text, href, words) {
  if (document.getElementById(id)) return;
  const line = document.createElement("p");
  line.id = id;
  line.className = "notice note";
  line.role = "status";
  const link = document.createElement("a");
  link.href = href;
  link.textContent = words;
  line.append(`${text} `, link);
  place.before(line);
}

function sayChanged(part) {
  sayBefore(part, `${part.id}-changed`, "This has changed while you were at it.", location.href, "Show it");
}

function sayEnd(why) {
  const first = document.querySelector("main > *");
  if (why === "other_mode")
    sayBefore(first, "ended", "You switched modes elsewhere.", "/console", "Go on there");
  if (why !== "signed_out") return;
  const next = encodeURIComponent(location.pathname + location.search);
  sayBefore(first, "ended", "You are signed out.", `/console/sign-in?next=${next}`, "Sign in");
}

document.addEventListener("visibilitychange", () => (document.hidden ? hangUp() : listen()));
addEventListener("pagehide", hangUp);
addEventListener("pageshow", listen);

enhance(document);
// A newer link, in the same tab.
addEventListener("hashchange", () => document.querySelectorAll("[data-from-hash]").forEach(takeCode));
refuseOtherAddress();
listen();
document.addEventListener("htmx:after:swap", () => enhance(document));
