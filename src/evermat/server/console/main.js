// The frame: which view an address shows, the keyboard, the feed, and the token.

import { counted, follow, get, setToken } from "./api.js";
import { error, h, notice } from "./dom.js";
import * as views from "./views.js";

const VIEWS = [
  ["", "Overview", views.overview],
  ["query", "Query", views.query],
  ["why", "Why", views.why],
  ["update", "Update", views.update],
  ["versions", "Versions", views.versions],
  ["rules", "Rules", views.rules],
  ["contradictions", "Contradictions", views.contradictions],
];
const main = document.getElementById("main");
const live = document.getElementById("live");

function parsed() {
  const [, path, text = ""] = /^#?\/?([^?]*)\??(.*)$/s.exec(location.hash);
  return [path, Object.fromEntries(new URLSearchParams(text))];
}

let turn = 0;
let wanted = ""; // what gets the focus when the view is there
async function show() {
  const [path, params] = parsed();
  const mine = ++turn;
  const view = path === "facts" ? views.facts : (VIEWS.find(([name]) => name === path) ?? VIEWS[0])[2];
  for (const link of document.querySelectorAll("#nav a")) {
    if (link.dataset.path === (path === "facts" ? "" : path)) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  main.setAttribute("aria-busy", "true");
  try {
    const parts = await view(params);
    if (mine === turn) main.replaceChildren(...parts.flat());
  } catch (problem) {
    if (problem.status === 401) askToken(problem);
    if (mine === turn) main.replaceChildren(error(problem));
  }
  if (mine !== turn) return;
  main.removeAttribute("aria-busy");
  document.getElementById(wanted)?.focus();
  wanted = "";
  document.title = `${main.querySelector("h1")?.textContent ?? "Evermat"} – Evermat`;
}

function askToken(problem) {
  const dialog = document.getElementById("token");
  const input = h("input", { type: "password", autocomplete: "off", "aria-label": "Token", required: true });
  dialog.replaceChildren(h("form", { method: "dialog", onsubmit: () => { setToken(input.value.trim()); show(); begin(); } },
    h("h2", { id: "token-title" }, "This server needs a token"),
    h("p", { className: "note" }, problem.message), input,
    h("div", { className: "tools" }, h("button", { className: "main" }, "Go on"))));
  if (!dialog.open) dialog.showModal();
}

function help() {
  const dialog = document.getElementById("help");
  const keys = [...VIEWS.map(([, name], at) => [String(at + 1), name]), ["/", "Ask a query"], ["Ctrl + Enter", "Ask, in the query"], ["Esc", "Close this"]];
  dialog.replaceChildren(h("form", { method: "dialog" }, h("h2", { id: "help-title" }, "Keyboard"),
    h("dl", {}, keys.map(([key, text]) => [h("dt", {}, h("kbd", {}, key)), h("dd", {}, text)])),
    h("div", { className: "tools" }, h("button", { className: "main" }, "Close"))));
  dialog.showModal();
}

addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select")) return;
  if (document.querySelector("dialog[open]")) return;
  const view = VIEWS[Number(event.key) - 1];
  if (view) location.hash = `#/${view[0]}`;
  else if (event.key === "/") {
    event.preventDefault();
    wanted = "query";
    if (parsed()[0] === "query") show();
    else location.hash = "#/query";
  } else if (event.key === "?") help();
});

function told(event) {
  live.classList.toggle("away", event.kind === "away");
  live.title = event.kind === "away" ? "The server does not answer" : "Version of the facts";
  if (event.number !== undefined) live.textContent = `version ${event.number}`;
  if (event.kind !== "change") return;
  const count = (side) => Object.values(side).reduce((sum, rows) => sum + rows.length, 0);
  const [path] = parsed();
  notice(`Version ${event.number}: ${counted(count(event.added), "fact")} added, ${count(event.removed).toLocaleString("en-GB")} removed. `,
    h("a", { href: `#/versions?number=${event.number}` }, "Differences"));
  if (path === "" || path === "versions") show();
}

async function begin() {
  try {
    const about = await get("/api");
    document.getElementById("name").textContent = about.name;
    follow(about.version, told);
  } catch {
    live.textContent = "";
  }
}

document.getElementById("nav").append(...VIEWS.map(([path, name]) => h("a", { href: `#/${path}`, "data-path": path }, name)));
document.getElementById("help-button").addEventListener("click", help);
addEventListener("hashchange", show);
show();
begin();
