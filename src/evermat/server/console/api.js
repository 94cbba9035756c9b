// Requests to the server, and the forms of what it answers.

const TOKEN = "evermat-token";

export class Problem extends Error {
  constructor(status, error) {
    super(error.message);
    this.status = status;
    this.error = error;
  }
}

export function setToken(token) {
  if (token) sessionStorage.setItem(TOKEN, token);
  else sessionStorage.removeItem(TOKEN);
}

function headers(more = {}) {
  const token = sessionStorage.getItem(TOKEN);
  return token ? { ...more, Authorization: `Bearer ${token}` } : more;
}

async function answered(response) {
  if (response.ok) return response;
  let error = { code: "", message: `The server answers ${response.status}.`, text: "" };
  try {
    error = (await response.json()).error;
  } catch {
    // What is in between, such as a proxy, answers in its own form.
  }
  throw new Problem(response.status, error);
}

export function address(path, params = {}) {
  const given = Object.entries(params).filter(([, value]) => value !== undefined && value !== "");
  const query = new URLSearchParams(given).toString();
  return query ? `${path}?${query}` : path;
}

export async function get(path, params, options = {}) {
  const response = await fetch(address(path, params), { ...options, headers: headers() });
  return (await answered(response)).json();
}

export async function post(path, body, params) {
  const response = await fetch(address(path, params), {
    method: "POST",
    headers: headers(body === undefined ? {} : { "Content-Type": "application/json" }),
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  return (await answered(response)).json();
}

// A file for the user, in a format that the server writes.
export async function download(path, params, type, name) {
  const response = await fetch(address(path, params), { headers: headers({ Accept: type }) });
  const blob = await (await answered(response)).blob();
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

// Events of the feed, for ever: after a break it goes on where it was.
export async function follow(since, told) {
  let last = since;
  for (;;) {
    try {
      const response = await fetch(address("/api/changes", { since: last }), { headers: headers() });
      const reader = (await answered(response)).body.pipeThrough(new TextDecoderStream()).getReader();
      let text = "";
      told({ kind: "hello", number: last });
      for (;;) {
        const { value, done } = await reader.read();
        if (done) break;
        text += value;
        const events = text.split("\n\n");
        text = events.pop();
        for (const event of events) {
          const found = Object.fromEntries(event.split("\n").map((line) => {
            const at = line.indexOf(": ");
            return [line.slice(0, at), line.slice(at + 2)];
          }));
          if (found.id) last = Number(found.id);
          if (found.event === "change") told({ kind: "change", number: last, ...JSON.parse(found.data) });
        }
      }
    } catch (problem) {
      if (problem.status === 401) return;
      if (problem.status === 410 || problem.status === 404) last = undefined;
    }
    told({ kind: "away" });
    await new Promise((go) => setTimeout(go, 3000));
  }
}

// ------------------------------------------------------------------------- words

export function number(value) {
  return value.toLocaleString("en-GB");
}

export function counted(value, noun, plural = `${noun}s`) {
  return `${number(value)} ${value === 1 ? noun : plural}`;
}

export function predicate(name) {
  return /^[A-Za-z_]\w*$/.test(name) ? name : `<${name}>`;
}

// A fact as the language has it, of values that are terms already.
export function fact(name, terms) {
  return name === "triple" && terms.length === 3
    ? `[${terms.join(", ")}]`
    : `${predicate(name)}(${terms.join(", ")})`;
}

// What a term shows in a table: strings without quotes.
export function shown(term) {
  if (term === null) return { text: "", kind: "none" };
  if (/^".*"$/s.test(term)) {
    try {
      return { text: JSON.parse(term), kind: "string" };
    } catch {
      return { text: term, kind: "other" };
    }
  }
  if (/^<.*>$/s.test(term)) return { text: term.slice(1, -1), kind: "iri" };
  if (/^[-+\d.]/.test(term)) return { text: term, kind: "number" };
  return { text: term, kind: "other" };
}

export function ago(time) {
  const seconds = (Date.now() - new Date(time)) / 1000;
  if (seconds < 60) return "just now";
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h ago`;
  return new Date(time).toLocaleDateString("en-GB", { dateStyle: "medium" });
}
