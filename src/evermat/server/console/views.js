// The views: each gets the parameters of its address and gives back what is shown.

import { ago, counted, download, fact, get, number, post } from "./api.js";
import { changes, empty, error, h, notice, panel, rule, sizes, table, title, whyLink } from "./dom.js";
import { graph } from "./graph.js";
import { failures, proof } from "./proof.js";

const PAGE = 50;
const FILES = [["CSV", "text/csv", "csv"], ["Arrow", "application/vnd.apache.arrow.stream", "arrow"]];

// --------------------------------------------------------------------------- overview

export async function overview() {
  const [about, { predicates }, shape, found] = await Promise.all([
    get("/api"), get("/api/predicates"), get("/api/graph"), get("/api/contradictions", { limit: 0 }),
  ]);
  const size = new Map(predicates.map((each) => [each.name, each.facts]));
  const figure = (value, label, link) => h(link ? "a" : "div", { className: "figure", href: link }, h("b", {}, number(value)), label);
  return [
    title("Overview", `${counted(about.facts, "fact")} follow from what was inserted and from ${counted(about.rules, "rule")}.`),
    h("div", { className: "figures" },
      figure(about.facts, about.facts === 1 ? "fact" : "facts"),
      figure(about.predicates, "predicates"),
      figure(about.rules, "rules", "#/rules"),
      figure(about.version, "current version", "#/versions"),
      found.count ? figure(found.count, "contradictions", "#/contradictions") : null),
    predicates.length ? panel("What depends on what", graph(shape, size)) : panel(null, empty("There are no facts and no rules yet. An update brings some.")),
    panel("Predicates", h("div", { className: "scroll" }, h("table", {},
      h("thead", {}, h("tr", {}, ["predicate", "columns", "facts", "explicit"].map((name) => h("th", { scope: "col" }, name)))),
      h("tbody", {}, predicates.map((each) => h("tr", {},
        h("td", {}, h("a", { href: `#/facts?predicate=${encodeURIComponent(each.name)}` }, each.name)),
        h("td", { className: "note" }, each.columns.join(", ")),
        h("td", { className: "amount" }, number(each.facts)),
        h("td", { className: "amount" }, number(each.explicit)))))))),
  ];
}

// ------------------------------------------------------------------------ facts, query

// A table whose pages, order and files come from one path.
function pages(path, params, { why, name }) {
  const place = h("div", {});
  let [offset, order] = [0, undefined];
  const load = async () => {
    try {
      const found = await get(path, { ...params, terms: true, limit: PAGE, offset, order });
      const last = Math.min(offset + PAGE, found.count);
      const go = (to) => { offset = to; load(); };
      place.replaceChildren(
        h("div", { className: "tools" },
          h("span", { className: "count" }, counted(found.count, "row"), h("span", { className: "note" }, ` at version ${found.version}`)),
          h("span", { className: "grow" }),
          FILES.map(([label, type, suffix]) => h("button", { className: "quiet", onclick: () => download(path, { ...params, limit: 100000 }, type, `${name}.${suffix}`).catch((problem) => notice(problem.message)) }, label))),
        found.columns.length
          ? table(found, { why, order, sort: (by) => { order = by; offset = 0; load(); } })
          : h("p", { className: "answer" }, found.count ? "Yes." : "No."),
        found.count > PAGE ? h("div", { className: "tools" },
          h("button", { disabled: offset === 0, onclick: () => go(Math.max(0, offset - PAGE)) }, "Previous"),
          h("span", { className: "note" }, `${number(offset + 1)} to ${number(last)}`),
          h("button", { disabled: last >= found.count, onclick: () => go(offset + PAGE) }, "Next")) : "");
    } catch (problem) {
      place.replaceChildren(error(problem));
    }
  };
  load();
  return place;
}

export async function facts({ predicate, sort = "all" }) {
  const choice = h("select", { "aria-label": "Which facts", onchange: (event) => { location.hash = `#/facts?predicate=${encodeURIComponent(predicate)}&sort=${event.target.value}`; } },
    [["all", "all facts"], ["explicit", "inserted ones"], ["derived", "derived ones"]].map(([value, text]) => h("option", { value, selected: value === sort }, text)));
  return [
    title(predicate, null, choice),
    panel(null, pages("/api/facts", { predicate, sort }, { name: predicate, why: (row) => fact(predicate, row) })),
  ];
}

// The fact that a row of answers stands for, where the query is a single atom.
function factOf(text, columns) {
  const atom = /^\s*([\w:<>/#.-]+)\(([^()]*)\)\s*$/.exec(text);
  if (!atom || /(^|,)\s*_\s*(,|$)/.test(atom[2])) return null;
  return (row) => `${atom[1]}(${atom[2].replace(/\?(\w+)/g, (_, name) => row[columns.indexOf(name)])})`;
}

export async function query({ q = "" }) {
  const { predicates } = await get("/api/predicates");
  const input = h("textarea", { id: "query", rows: 3, spellcheck: "false", placeholder: 'reach("a", ?x), not blocked(?x)', "aria-label": "Query", value: q });
  const place = h("div", {});
  const ask = async () => {
    const text = input.value.trim();
    if (!text) return;
    history.replaceState(null, "", `#/query?q=${encodeURIComponent(text)}`);
    place.replaceChildren(h("p", { className: "note" }, "…"));
    try {
      const { columns } = await get("/api/query", { query: text, limit: 0 });
      place.replaceChildren(pages("/api/query", { query: text }, { name: "answers", why: factOf(text, columns) }));
    } catch (problem) {
      place.replaceChildren(error(problem));
    }
  };
  input.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); ask(); }
  });
  const put = (each) => {
    const atom = `${fact(each.name, each.columns.map((name) => `?${name.replace(/\W/g, "_")}`))}`;
    input.value = input.value.trim() ? `${input.value.trim()}, ${atom}` : atom;
    input.focus();
  };
  if (q) ask();
  return [
    title("Query", "Atoms, separated by commas; variables begin with a question mark."),
    panel(null,
      h("div", { className: "chips", "aria-label": "Predicates" }, predicates.map((each) => h("button", { className: "chip", onclick: () => put(each) }, each.name))),
      input,
      h("div", { className: "tools" }, h("button", { className: "main", onclick: ask }, "Ask"), h("span", { className: "note" }, "Ctrl + Enter"))),
    panel(null, place),
  ];
}

// --------------------------------------------------------------------------------- why

export async function why({ fact: text = "" }) {
  const input = h("input", { id: "fact", spellcheck: "false", placeholder: 'reach("a", "c")', "aria-label": "Fact", value: text });
  const form = h("form", { className: "line", onsubmit: (event) => { event.preventDefault(); location.hash = `#/why?fact=${encodeURIComponent(input.value.trim())}`; } },
    input, h("button", { className: "main" }, "Explain"));
  const parts = [title("Why", "Why a fact holds, or why it does not."), panel(null, form)];
  if (!text) return parts;
  try {
    const found = await get("/api/explain", { fact: text });
    parts.push(found.holds
      ? panel(h("span", {}, h("code", {}, found.fact), " holds"), proof(found))
      : panel(h("span", {}, h("code", {}, found.fact), " does not hold"), failures(found)));
  } catch (problem) {
    parts.push(panel(null, error(problem)));
  }
  return parts;
}

// ------------------------------------------------------------------------------ update

export async function update() {
  const editor = (id, label, example) => h("label", { className: "editor" }, h("span", {}, label),
    h("textarea", { id, rows: 6, spellcheck: "false", placeholder: example }));
  const add = editor("add", "Add facts and rules", 'edge("c", "d") .\nfar(?x) :- reach(?x, "d") .');
  const remove = editor("remove", "Remove facts and rules", 'edge("a", "b") .');
  const name = h("input", { id: "update-title", maxlength: 200, placeholder: "What this update is about (optional)", "aria-label": "Title" });
  const place = h("div", {});
  const make = h("button", { className: "main", disabled: true }, "Make the update");
  let planned = null;
  const body = () => ({ add_rules: add.querySelector("textarea").value, remove_rules: remove.querySelector("textarea").value });
  const forget = () => { planned = null; make.disabled = true; place.replaceChildren(); };
  for (const each of [add, remove]) each.addEventListener("input", forget);
  const plan = async () => {
    forget();
    const asked = body();
    try {
      const found = await post("/api/update", asked, { dry_run: true, terms: true });
      planned = { ...asked, version: found.version };
      make.disabled = false;
      place.replaceChildren(panel("What would change", h("p", { className: "note" }, costs(found.report)), changes(found.sizes, found.facts)));
    } catch (problem) {
      place.replaceChildren(panel(null, error(problem)));
    }
  };
  make.addEventListener("click", async () => {
    if (!planned) return;
    make.disabled = true;
    try {
      const found = await post("/api/update", { ...planned, title: name.value }, { terms: true });
      for (const each of [add, remove]) each.querySelector("textarea").value = "";
      name.value = "";
      place.replaceChildren(panel(`Version ${found.version}`, h("p", { className: "note" }, costs(found.report)), changes(found.sizes, found.facts)));
    } catch (problem) {
      place.replaceChildren(panel(null, error(problem), problem.status === 409 ? h("button", { onclick: plan }, "Look again") : null));
    }
    planned = null;
  });
  return [
    title("Update", "Look at what would change, then make the update. It happens as a whole or not at all."),
    panel(null, h("div", { className: "two" }, remove, add), name,
      h("div", { className: "tools" }, h("button", { onclick: plan }, "Show what would change"), make)),
    place,
  ];
}

function costs(report) {
  const seconds = report.seconds < 1 ? `${(report.seconds * 1000).toFixed(1)} ms` : `${report.seconds.toFixed(1)} s`;
  return `${report.algorithm}, ${counted(report.instances, "rule instance")}, ${counted(report.rounds, "round")}, ${seconds}`;
}

// ---------------------------------------------------------------------------- versions

export async function versions({ number: chosen }) {
  const { versions: found, version: latest } = await get("/api/versions");
  const place = h("div", {});
  const show = async (version) => {
    for (const each of document.querySelectorAll(".versions li")) each.classList.toggle("chosen", each.dataset.number === String(version.number));
    const difference = await get(`/api/versions/${version.number}`, { terms: true });
    const names = Object.keys(version.sizes);
    const some = Object.fromEntries(names.map((name) => [name, { added: difference.added[name] ?? [], removed: difference.removed[name] ?? [] }]));
    place.replaceChildren(panel(`What version ${version.number} changed`, changes(version.sizes, some, difference)));
  };
  const back = async (version) => {
    const planned = await post(`/api/versions/${version.number}/restore`, undefined, { dry_run: true, terms: true });
    const make = h("button", { className: "main", onclick: async () => {
      const made = await post(`/api/versions/${version.number}/restore`);
      notice(`Version ${version.number} is back, as version ${made.version}.`);
      dispatchEvent(new HashChangeEvent("hashchange"));
    } }, "Go back");
    place.replaceChildren(panel(`Going back to version ${version.number} would change`, changes(planned.sizes, planned.facts), h("div", { className: "tools" }, make)));
  };
  const guarded = (work) => (version) => work(version).catch((problem) => place.replaceChildren(panel(null, error(problem))));
  const [showIt, goBack] = [guarded(show), guarded(back)];
  const total = (version, side) => Object.values(version.sizes).reduce((sum, each) => sum + each[side], 0);
  const list = found.map((version) => {
    const rules = version.rules.added + version.rules.removed;
    const isFirst = version === found.at(-1);
    return h("li", { "data-number": version.number },
      h("span", { className: "dot" }),
      h("div", {},
        h("strong", {}, `Version ${version.number}`), " ",
        h("span", { className: "note", title: new Date(version.time).toLocaleString("en-GB") }, ago(version.time)),
        h("div", {}, version.title || "Update"),
        h("div", {}, sizes({ added: total(version, "added"), removed: total(version, "removed") }), rules ? h("span", { className: "note" }, ` ${counted(rules, "rule")} changed`) : null)),
      h("div", { className: "tools" },
        isFirst ? null : h("button", { className: "quiet", onclick: () => showIt(version) }, "Differences"),
        version.number === latest ? null : h("button", { className: "quiet", onclick: () => goBack(version) }, "Go back …")));
  });
  const wanted = found.find((version) => String(version.number) === chosen);
  if (wanted && wanted !== found.at(-1)) showIt(wanted);
  return [title("Versions", "Every update makes a version; going back makes another one."), h("div", { className: "two wide" }, h("ul", { className: "versions" }, list), place)];
}

// ------------------------------------------------------------------------------- rules

export async function rules({ profile }) {
  const found = await get("/api/rules", { profile });
  const levels = Map.groupBy ? Map.groupBy(found.rules, (each) => each.level) : group(found.rules);
  const most = Math.max(...found.rules.map((each) => each.profile?.seconds ?? 0), 1e-9);
  const sections = [...levels.entries()].sort(([one], [other]) => one - other).map(([level, some]) => panel(`Stratum ${level}`,
    h("ul", { className: "rules" }, some.map((each) => h("li", {},
      rule(each.text),
      h("div", { className: "note" }, each.place, each.profile ? ` · ${(each.profile.seconds * 1000).toFixed(1)} ms, ${counted(each.profile.instances, "instance")}, ${counted(each.profile.facts, "fact")}, ${counted(each.profile.duplicates, "duplicate")}` : "",
        each.profile?.slowest_join ? h("div", {}, "slowest join: ", h("code", {}, each.profile.slowest_join)) : null),
      each.profile ? h("meter", { min: 0, max: most, value: each.profile.seconds, title: "Share of the time of the slowest rule" }) : null)))));
  return [
    title("Rules", found.rules.length ? "From those that need facts only to those that need others." : null,
      h("a", { className: "button", href: profile ? "#/rules" : "#/rules?profile=true" }, profile ? "Without times" : "Measure them")),
    ...(sections.length ? sections : [panel(null, empty("There are no rules."))]),
    panel("How they are run", h("details", {}, h("summary", {}, "Joins and indexes"), h("pre", {}, found.plan))),
  ];
}

function group(rows) {
  const found = new Map();
  for (const each of rows) found.set(each.level, [...(found.get(each.level) ?? []), each]);
  return found;
}

// ---------------------------------------------------------------------- contradictions

export async function contradictions() {
  const found = await get("/api/contradictions", { limit: 50 });
  return [
    title("Contradictions", found.count ? `${counted(found.count, "contradiction")}: something holds that a rule for false says cannot.` : "What rules for false find."),
    found.count
      ? found.contradictions.map((each) => panel(h("code", {}, each.text), proof(each.proof)))
      : panel(null, empty("Facts and rules do not contradict each other.")),
  ];
}
