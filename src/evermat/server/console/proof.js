// A proof as a tree that unfolds to the right: a fact, its rule, and what the rule needs.

import { h, rule, whyLink } from "./dom.js";

const OPEN = 3; // levels that are unfolded at first

export function proof(document) {
  const seen = new Set();
  const node = (at, depth) => {
    const step = document.steps[at];
    const again = seen.has(at);
    seen.add(at);
    const isExplicit = step.explicit ?? step.given;
    const kind = isExplicit ? "explicit" : again ? "again" : "derived";
    const card = h("div", { className: `card ${kind}`, id: again || isExplicit ? undefined : `step-${at}` },
      h("code", { className: "fact" }, step.fact),
      isExplicit ? h("span", { className: "tag" }, "explicit") : null,
      again && !isExplicit ? h("a", { className: "tag", href: `#step-${at}`, onclick: (event) => go(event, at) }, "see above") : null);
    if (isExplicit || again) return h("li", {}, card);
    card.append(reason(step));
    const needs = [
      ...step.premises.map((premise) => node(premise, depth + 1)),
      ...(step.absent ?? []).map((text) => h("li", {}, h("div", { className: "card absent" },
        h("span", { className: "tag" }, "there is no"), h("code", { className: "fact" }, text)))),
    ];
    if (!needs.length) return h("li", {}, card);
    const list = h("ul", {}, needs);
    const button = h("button", { className: "fold", "aria-expanded": "true" });
    const fold = (open) => {
      list.hidden = !open;
      button.setAttribute("aria-expanded", String(open));
      button.textContent = open ? "−" : `+${needs.length}`;
      button.setAttribute("aria-label", open ? `Fold what ${step.fact} needs` : `Show what ${step.fact} needs`);
    };
    button.addEventListener("click", () => fold(list.hidden));
    button.fold = fold;
    fold(depth < OPEN);
    card.append(button);
    return h("li", {}, card, list);
  };
  const tree = h("ul", { className: "proof" }, node(0, 0));
  const all = (open) => tree.querySelectorAll("button.fold").forEach((button) => button.fold(open));
  return h("div", {},
    h("div", { className: "tools" },
      h("button", { onclick: () => all(true) }, "Unfold all"),
      h("button", { onclick: () => all(false) }, "Fold all")),
    h("div", { className: "scroll" }, tree));
}

function go(event, at) {
  event.preventDefault();
  const place = document.getElementById(`step-${at}`);
  for (let list = place?.closest("ul"); list; list = list.parentElement.closest("ul")) {
    list.parentElement.querySelector(":scope > .card > button.fold")?.fold(true);
  }
  place?.scrollIntoView({ block: "center", inline: "center" });
  place?.classList.add("found");
  setTimeout(() => place?.classList.remove("found"), 1500);
}

function reason(step) {
  const values = Object.entries(step.binding ?? {});
  return h("details", { className: "by" },
    h("summary", {}, "by a rule", step.place ? h("span", { className: "place" }, step.place.split("/").pop()) : null),
    rule(step.rule),
    values.length ? h("dl", {}, values.map(([name, value]) => [h("dt", {}, `?${name}`), h("dd", {}, value)])) : null,
    (step.computations ?? []).map((text) => h("p", {}, "where ", h("code", {}, text))));
}

// How far each rule gets that could derive a fact.
export function failures(document) {
  if (!document.failures?.length) {
    return h("p", { className: "note" }, "No rule derives facts of this predicate, and nobody has inserted this one.");
  }
  return h("ol", { className: "failures" }, document.failures.map((failure) => {
    const missing = /^there is no (.+)$/.exec(failure.failed)?.[1];
    const canAsk = missing && !/[?_]\w*\b(?=[,)\]])/.test(missing.replace(/"(?:[^"\\]|\\.)*"/g, ""));
    return h("li", { className: "card absent" },
      h("p", { className: "failed" }, failure.failed, canAsk ? whyLink(missing, "Why not?") : null),
      h("p", { className: "note" }, "not by ", failure.place ? h("span", { className: "place" }, failure.place.split("/").pop()) : null),
      rule(failure.rule),
      failure.matches > 1 ? h("p", { className: "note" }, `the first of ${failure.matches} matches`) : null);
  }));
}
