"use strict";
const at = (id) => document.getElementById(id);
let facts = null;
const SILENT = "The service did not answer. Try again.";
let latest = 0; // the question whose answer is shown; an earlier one that comes late is dropped

// An element of text and children; nothing that came from outside becomes markup.
function make(tag, className, ...content) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  element.append(...content);
  return element;
}

// The service has a token, which was not typed, or not rightly.
class Unknown extends Error {}

async function ask(path, body) {
  const token = at("token").value.trim();
  const headers = /^[!-~]+$/.test(token) ? { Authorization: `Bearer ${token}` } : {};
  const request = body
    ? { method: "POST", headers: { ...headers, "Content-Type": "application/json" }, body: JSON.stringify(body) }
    : { headers };
  const response = await fetch(path, request).catch(() => {
    throw new Error(SILENT);
  });
  const text = await response.text();
  let reply;
  try {
    reply = JSON.parse(text);
  } catch {
    reply = { error: text };
  }
  if (response.ok) return reply;
  if (response.status === 401) {
    at("access").hidden = false;
    throw new Unknown(token ? "This is not the token of this service." : "This service needs its token.");
  }
  const again = response.headers.get("Retry-After");
  throw new Error(reply.error + (again ? ` (try again in ${again} s)` : ""));
}

// A text as it is; features as JSON, as "name:value" pairs, or as numbers.
function instance() {
  const typed = at("instance").value;
  if (facts.input === "text") return typed;
  const trimmed = typed.trim();
  if (/^[[{]/.test(trimmed)) {
    try {
      return JSON.parse(trimmed);
    } catch {
      throw new Error("Input that begins with [ or { must be JSON.");
    }
  }
  const parts = trimmed.split(/[\s,;]+/).filter(Boolean);
  const number = (text) => {
    const value = Number(text);
    if (text === "" || Number.isNaN(value)) throw new Error(`${JSON.stringify(text)} is not a number`);
    return value;
  };
  if (!parts.some((part) => part.includes(":"))) return parts.map(number);
  return Object.fromEntries(
    parts.map((part) => {
      const colon = part.lastIndexOf(":");
      return [part.slice(0, colon), number(part.slice(colon + 1))];
    }),
  );
}

const percent = (p) => (p > 0 && p < 0.005 ? "<1 %" : `${Math.round(100 * p)} %`);
const signed = (x, digits) => (x < 0 ? "−" : "+") + Math.abs(x).toFixed(digits);
const labelName = (entry) => entry.name ?? `label ${entry.label}`;

// A name that may be broken after its dots and such, before it is broken anywhere.
function breakable(name) {
  const parts = name.split(/(?<=[._/:-])/).flatMap((part) => [part, document.createElement("wbr")]);
  return parts.slice(0, -1);
}

// A model without training rows has no probabilities and no thresholds.
const decides = () => facts.optimize.length > 0;

function row(entry, place, asked) {
  const fill = make("span");
  if (decides()) fill.style.width = `${(100 * entry.probability).toFixed(1)}%`;
  const bar = make("div", "bar", fill);
  bar.hidden = !decides();
  bar.setAttribute("aria-hidden", "true");
  const summary = make(
    "summary",
    "",
    make("span", "place", String(place)),
    make("span", "name", ...breakable(labelName(entry))),
    bar,
    make("span", "percent", decides() ? percent(entry.probability) : entry.score.toFixed(3).replace("-", "−")),
    make("span", "mark", entry.kept ? "✓ kept" : ""),
  );
  const why = make("div", "why");
  const details = make("details", "", summary, why);
  let known = false; // or being asked for; after an error it is asked again
  details.addEventListener("toggle", async () => {
    if (!details.open || known) return;
    known = true;
    known = await explain(why, entry, asked);
  });
  return make("li", entry.kept ? "kept" : "below", details);
}

// Whether the reasons were found.
async function explain(why, entry, asked) {
  why.replaceChildren(make("p", "", "Looking for reasons …"));
  try {
    const reply = await ask("explain", { instance: asked, labels: [entry.label] });
    why.replaceChildren(...reasons(reply.explanations[0]));
    return true;
  } catch (error) {
    why.replaceChildren(make("p", "down", error.message));
    return false;
  }
}

// Names of rows are the starts of their texts, of at most 80 characters.
const ellipsis = (name) => (name.length < 70 ? name : `${name} …`);

function reasons(found) {
  const parts = [make("h3", "", "What makes up the score")];
  const rows = found.reasons.map((reason) => {
    const side = reason.contribution < 0 ? "down" : "up";
    return make("tr", "", make("td", side, signed(reason.contribution, 3)), make("td", "", reason.text));
  });
  rows.push(make("tr", "sum", make("td", "", `=${found.score.toFixed(3).replace("-", "−")}`), make("td", "", "the score")));
  parts.push(make("table", "", make("tbody", "", ...rows)));
  if (found.neighbors.length) {
    const near = found.neighbors.map((point) =>
      make("tr", "", make("td", "", point.distance.toFixed(2)), make("td", "", point.name === null ? `row ${point.row}` : ellipsis(point.name))),
    );
    parts.push(make("h3", "", "Nearest training rows with this label (distance)"), make("table", "", make("tbody", "", ...near)));
  }
  const place = `Rank ${found.rank} of ${found.n_candidates} candidates.`;
  parts.push(make("p", "note", place));
  return parts;
}

function show(reply, asked, took) {
  const ranking = reply.rankings[0];
  const list = at("labels");
  list.replaceChildren();
  const kept = ranking.filter((entry) => entry.kept).length;
  ranking.forEach((entry, i) => list.append(row(entry, i + 1, asked)));
  const metric = at("optimize").value;
  at("status").textContent =
    (reply.without_evidence[0] ? `The model knows nothing of this ${facts.input === "text" ? "text" : "row"}: its labels are in order of frequency. ` : "") +
    `${ranking.length} label${ranking.length === 1 ? "" : "s"} by score, in ${Math.round(took)} ms; ` +
    (decides()
      ? `the thresholds for ${metric} keep ${kept === 0 ? "none" : kept} of them${kept ? ", marked ✓" : ""}. ` +
        "The bars show probabilities, on which thresholds are based. Open a label for its reasons."
      : "scores are not probabilities, since the model has no training rows. Open a label for its reasons.") +
    (facts.propensity_weight > 0 ? " The ranking has a rare-label boost." : "");
  at("answer").hidden = false;
  const first = list.querySelector("details");
  if (first) first.open = true;
}

function complain(message) {
  at("problem").textContent = message;
  at("problem").hidden = !message;
}

async function rank(event) {
  event.preventDefault();
  const mine = ++latest;
  complain("");
  at("ask").setAttribute("aria-disabled", "true");
  const started = performance.now();
  try {
    if (!facts) await start();
    const asked = instance();
    const reply = await ask("rank", {
      instance: asked,
      k: Number(at("k").value) || 10,
      optimize: at("optimize").value || null,
      probabilities: decides(),
    });
    if (mine === latest) show(reply, asked, performance.now() - started);
  } catch (error) {
    if (mine === latest) {
      at("answer").hidden = true;
      complain(error.message);
    }
  } finally {
    if (mine === latest) at("ask").removeAttribute("aria-disabled");
  }
}

async function start() {
  facts = await ask("model").catch((error) => {
    throw error instanceof Unknown ? error : new Error(SILENT);
  });
  at("access").hidden = true;
  document.title = `${facts.name} · metarank`;
  at("title").textContent = facts.name;
  at("lead").textContent = `Ranks ${facts.n_labels.toLocaleString("en")} labels for a ${facts.input === "text" ? "text" : facts.input === "blocks" ? "row of several parts" : `row of ${facts.n_features.toLocaleString("en")} features`}.`;
  at("footer").textContent = `metarank ${facts.version}`;
  at("k").max = Math.min(facts.limits.max_k, facts.n_labels);
  at("k").value = Math.min(10, at("k").max);
  at("optimize").replaceChildren(...facts.optimize.map((name) => make("option", "", name)));
  at("optimize").parentElement.style.display = decides() ? "" : "none";
  if (facts.input === "text") {
    at("instance").spellcheck = true;
    at("hint").textContent = "Type or paste a text; Ctrl+Enter ranks.";
  } else if (facts.input === "blocks") {
    at("instance-label").textContent = "Parts";
    const parts = Object.entries(facts.blocks).map(([name, kind]) => `${name} (${kind})`);
    at("hint").textContent = `A JSON object of ${parts.join(", ")}; Ctrl+Enter ranks.`;
  } else {
    at("instance-label").textContent = "Features";
    const keys = facts.feature_names ? "name:value" : "number:value";
    at("hint").textContent = `${keys} pairs, a JSON object or list, or ${facts.n_features.toLocaleString("en")} numbers; Ctrl+Enter ranks.`;
  }
}

at("form").addEventListener("submit", rank);
at("instance").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) at("form").requestSubmit();
});
const open = () => start().then(() => complain(""), (error) => complain(error.message));
at("token").addEventListener("change", open);
at("token").addEventListener("keydown", (event) => {
  if (event.key !== "Enter") return;
  event.preventDefault(); // else it would ask for the labels of nothing
  open();
});
open();
