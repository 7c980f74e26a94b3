/** The search box of the documentation: shows what is found while one types. Without this script the box leads to the same list. */

const WAIT_MS = 150;

const box = document.querySelector("#search input");
const found = document.querySelector("#found");
let asked = 0;
let timer;

/** Takes the list from the page that the box leads to. An answer that is overtaken by a later question is dropped. */
async function ask() {
  const mine = ++asked;
  const query = box.value.trim();
  if (query === "") {
    found.hidden = true;
    return;
  }
  const response = await fetch(`/docs/search?${new URLSearchParams({ q: query })}`);
  if (!response.ok) return;
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  if (mine !== asked) return;
  found.replaceChildren(...page.querySelector("#results").childNodes);
  found.hidden = false;
}

box.addEventListener("input", () => {
  clearTimeout(timer);
  timer = setTimeout(ask, WAIT_MS);
});

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") found.hidden = true;
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest("input, textarea, select")) return;
  event.preventDefault();
  box.focus();
});
