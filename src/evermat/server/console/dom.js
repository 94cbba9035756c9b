// Elements, and the parts that several views share.

import { counted, fact, number, shown } from "./api.js";

export function h(name, about = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(about)) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key === "value" || key === "open") element[key] = value;
    else element.setAttribute(key === "className" ? "class" : key, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

export function s(name, about = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(about)) {
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else element.setAttribute(key, value);
  }
  element.append(...children);
  return element;
}

export function title(text, note, ...actions) {
  return h("div", { className: "title" }, h("div", {}, h("h1", {}, text), note && h("p", { className: "note" }, note)), ...actions);
}

export function panel(heading, ...children) {
  return h("section", { className: "panel" }, heading && h("h2", {}, heading), ...children);
}

export function empty(text) {
  return h("p", { className: "empty" }, text);
}

export function error(problem) {
  const about = problem.error ?? { message: String(problem.message ?? problem) };
  return h("div", { className: "problem", role: "alert" },
    h("p", {}, h("strong", {}, about.message), about.code && h("span", { className: "code" }, about.code)),
    about.line && about.text && h("pre", {}, about.text.split("\n").slice(1).filter((line) => !/^\s*= /.test(line)).join("\n")),
    about.reason && h("p", {}, about.reason),
    about.help && h("p", { className: "help" }, about.help));
}

export function sizes({ added, removed }) {
  return h("span", { className: "sizes" },
    added ? h("span", { className: "plus" }, `+${number(added)}`) : null,
    removed ? h("span", { className: "minus" }, `−${number(removed)}`) : null);
}

export function term(value) {
  const { text, kind } = shown(value);
  return h("span", { className: `term ${kind}`, title: kind === "iri" ? text : undefined }, text);
}

export function whyLink(text, words = "Why?") {
  return h("a", { className: "why", href: `#/why?fact=${encodeURIComponent(text)}` }, words);
}

// A table of rows of terms; `why` makes the fact of a row that can be explained.
export function table({ columns, rows }, { why, order, sort } = {}) {
  const heads = columns.map((name) => {
    const sign = order === name ? " ↑" : order === `-${name}` ? " ↓" : "";
    return h("th", { scope: "col", "aria-sort": sign ? (sign === " ↑" ? "ascending" : "descending") : undefined },
      sort ? h("button", { onclick: () => sort(order === name ? `-${name}` : name) }, name + sign) : name);
  });
  return h("div", { className: "scroll" },
    h("table", {},
      h("thead", {}, h("tr", {}, heads, why && h("th", {}, h("span", { className: "hidden" }, "Explanation")))),
      h("tbody", {}, rows.map((row) => h("tr", {},
        row.map((value) => h("td", {}, term(value))),
        why && h("td", { className: "end" }, whyLink(why(row))))))));
}

// What changed: facts by predicate, added and removed.
export function changes(sizesOf, facts, { added_rules: come = [], removed_rules: gone = [] } = {}) {
  const names = Object.keys(sizesOf);
  const rules = [...come.map((text) => ["plus", text]), ...gone.map((text) => ["minus", text])];
  if (!names.length && !rules.length) return empty("Nothing changes.");
  return h("div", { className: "changes" },
    rules.length ? h("details", { open: true },
      h("summary", {}, h("strong", {}, "Rules")),
      h("ul", { className: "facts" }, rules.map(([kind, text]) => h("li", { className: kind }, h("code", {}, text))))) : null,
    names.map((name) => {
      const some = facts[name] ?? { added: [], removed: [] };
      const rest = sizesOf[name].added + sizesOf[name].removed - some.added.length - some.removed.length;
      return h("details", { open: names.length < 4 || some.added.length + some.removed.length < 4 },
        h("summary", {}, h("strong", {}, name), sizes(sizesOf[name])),
        h("ul", { className: "facts" },
          some.removed.map((row) => h("li", { className: "minus" }, h("code", {}, fact(name, row)))),
          some.added.map((row) => h("li", { className: "plus" }, h("code", {}, fact(name, row)), whyLink(fact(name, row)))),
          rest > 0 && h("li", { className: "rest" }, `and ${counted(rest, "more", "more")}`)));
    }));
}

// Rules with their variables, strings and negations told apart.
export function rule(text) {
  const parts = text.split(/(\?\w+|"(?:[^"\\]|\\.)*"|\bnot\b|:-)/);
  const kind = (part) => part.startsWith("?") ? "variable" : part.startsWith('"') ? "string" : part === "not" ? "not" : part === ":-" ? "if" : "";
  return h("code", { className: "rule" }, parts.filter(Boolean).map((part) => kind(part) ? h("span", { className: kind(part) }, part) : part));
}

let hiding;
export function notice(text, action) {
  const place = document.getElementById("notice");
  place.replaceChildren(text, action ?? "");
  place.hidden = false;
  clearTimeout(hiding);
  hiding = setTimeout(() => { place.hidden = true; }, 8000);
}
