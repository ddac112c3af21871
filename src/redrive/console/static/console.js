// The console's script: pages work without it; with it they keep themselves up to date and answer to the keyboard.
"use strict";
const root = document.documentElement, shell = document.body.dataset;
const $ = (css, of = document) => of.querySelector(css), $$ = (css, of = document) => [...of.querySelectorAll(css)];
const kept = {
  get(name) { try { return localStorage.getItem(`redrive-${name}`); } catch { return null; } },
  set(name, value) { try { localStorage.setItem(`redrive-${name}`, value); } catch { /* a private window keeps nothing */ } },
};
const on = (target, name, act) => target?.addEventListener(name, act);
const within = (at, number) => Math.max(0, Math.min(number - 1, at));
const parsed = (text) => new DOMParser().parseFromString(text, "text/html");
const made = (name, values) => Object.assign(document.createElement(name), values);
const onceSeen = (act) => requestAnimationFrame(() => setTimeout(act));
const TYPED = "input:not([type=checkbox], [type=radio]), select, textarea";

// ---- rows below the fold are laid out after the first frame, unless the page begins further down
const past = (type) => performance.getEntriesByType(type)[0];
if (!past("paint") && past("navigation").type === "navigate") {
  root.classList.add("early");
  onceSeen(() => root.classList.remove("early"));
}

// ---- times: a page has moments, put into words here by the server's clock, so an unchanged page stays the same
const SECOND = 1000, MINUTE = 60 * SECOND, HOUR = 60 * MINUTE, DAY = 24 * HOUR;
let serverAt = Number(shell.now), heardAt = performance.now();
const serverNow = () => serverAt + (shell.clock === "system" ? performance.now() - heardAt : 0);
const zone = kept.get("zone") === "local" ? undefined : "UTC";

function span(ms) {
  const parts = [];
  for (const [unit, length] of [["d", DAY], ["h", HOUR], ["min", MINUTE], ["s", SECOND]]) {
    if (ms >= length) parts.push(`${Math.floor(ms / length)} ${unit}`);
    ms %= length;
  }
  return parts.slice(0, 2).join(" ");
}

function written(at) {
  if (zone) return `${new Date(at).toISOString().slice(0, 16).replace("T", " ")}Z`;
  return new Date(at).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
}

function ago(at, now) {
  const away = Math.abs(now - at);
  if (away >= DAY) return written(at);
  if (away < SECOND) return "now";
  const words = span(away >= 10 * MINUTE ? away - away % MINUTE : away);
  return at <= now ? `${words} ago` : `in ${words}`;
}

function tellTimes() {
  const now = serverNow(), asked = new Date(serverAt).toISOString(), clock = new Date(now).toISOString();
  const tell = (css, text) => {
    for (const each of $$(css)) {
      const words = text(each);
      if (each.textContent !== words) each.textContent = words;
    }
  };
  tell("time[data-ago]", (each) => {
    each.title = each.dateTime;
    return ago(Date.parse(each.dateTime), now);
  });
  tell("time[data-left]", (each) => span(Math.max(0, Date.parse(each.dateTime) - now)) || "0 s");
  tell("time[data-as-of]", () => `${asked.slice(11, 19)}Z`);
  tell("[data-clock-time]", () => `${clock.slice(0, 19).replace("T", " ")}Z`);
}

function heardTime(value) {
  if (!value) return;
  serverAt = Number(value);
  heardAt = performance.now();
}
tellTimes();
setInterval(() => { if (!paused && !document.hidden) tellTimes(); }, SECOND);

// ---- live parts: each asks again with the tag of what it shows, while somebody looks
let paused = kept.get("paused") === "yes", failures = 0;
const tags = new Map(), due = new Map();
const isBusy = (part) => part.contains(document.activeElement) && document.activeElement.matches(TYPED);

async function asked(url, tag) {
  const headers = { "X-Redrive-Part": "live" };
  if (tag) headers["If-None-Match"] = tag;
  const answer = await fetch(url, { headers, cache: "no-store" });
  if (answer.redirected && answer.url.includes("/login")) throw Object.assign(Error(), { signedOut: true });
  if (answer.status >= 400) throw Error(`The server answered ${answer.status}.`);
  failures = 0;
  trouble("");
  heardTime(answer.headers.get("X-Redrive-Now"));
  return answer;
}

async function refresh(part) {
  const url = part.dataset.fragment, answer = await asked(url, tags.get(part));
  if (answer.status === 304) { if (!paused) tellTimes(); return; }
  if (part.dataset.fragment !== url || (paused && part.id === "live")) return;
  tags.set(part, answer.headers.get("ETag"));
  const text = await answer.text(), into = answer.headers.get("X-Redrive-Into");
  if (into) $(into)?.replaceWith(...parsed(text).body.childNodes);
  else morph(part, parsed(text).body);
  follow(); attention(); tellTimes(); markRefused();
}

// Morphing keeps focus, ticks and folds. Children with an id are matched by it, others by place.
function morph(old, fresh) {
  const byId = new Map($$(":scope > [id]", old).map((each) => [each.id, each]));
  let at = old.firstChild;
  const drop = () => { const gone = at; at = at.nextSibling; gone.remove(); };
  for (const next of [...fresh.childNodes]) {
    while (next.nodeType === 1 && at?.nodeType === 3) drop(); // blanks, which a part alone lacks
    const same = next.id ? byId.get(next.id) : at && !at.id && at.nodeName === next.nodeName ? at : null;
    if (!same) { old.insertBefore(next, at); continue; }
    if (same !== at) old.insertBefore(same, at); else at = at.nextSibling;
    if (same.nodeType !== 1) { if (same.data !== next.data) same.data = next.data; continue; }
    if (same.isEqualNode(next)) continue;
    const own = (name) => name === "open" || name === "data-open" || name === "aria-selected" || name === "class" && same.classList.contains("cursor");
    for (const { name } of [...same.attributes]) if (!next.hasAttribute(name) && !own(name)) same.removeAttribute(name);
    for (const { name, value } of next.attributes) if (same.getAttribute(name) !== value && !own(name)) same.setAttribute(name, value);
    if (!same.matches("input, textarea, select")) morph(same, next);
  }
  while (at) drop();
}

function trouble(text, signedOut) {
  const line = $("#trouble");
  if (!line) return;
  line.hidden = !text;
  line.textContent = text;
  if (signedOut) line.append(" ", made("a", { href: "", textContent: "Sign in again" }));
}

function failed(error) {
  failures += 1;
  if (error.signedOut) return trouble("You are signed out.", true);
  trouble(`${error.message && !(error instanceof TypeError) ? error.message : "No answer."} Trying again; the page shows what it last had.`);
}

// ---- paused, a list says how many are newer
const live = $("#live"), newer = $("#newer");
let newerTag = "";
const rowNames = (of) => $$("[data-row]", of).map((each) => each.id || $("a", each)?.getAttribute("href"));

async function askForNewer() {
  const answer = await asked(live.dataset.fragment, newerTag);
  if (answer.status !== 200 || !paused) return;
  newerTag = answer.headers.get("ETag");
  const page = parsed(await answer.text()), known = new Set(rowNames(live));
  const number = Number($("[data-newer]", page)?.dataset.newer || 0) || rowNames(page).filter((name) => !known.has(name)).length;
  newer.hidden = !number;
  newer.firstElementChild.textContent = `${number} newer: show ${number === 1 ? "it" : "them"}`;
}

on(newer?.firstElementChild, "click", async () => {
  newer.hidden = true;
  newerTag = "";
  paused = false;
  await refresh(live).catch(failed);
  paused = true;
});

function tick(now) {
  if (document.hidden || $("dialog[open]")) return;
  for (const part of $$("[data-every]")) {
    if (now < (due.get(part) ?? 0) || isBusy(part) || (search && !search.hidden && part.contains(letters()))) continue;
    const first = !due.has(part);
    due.set(part, now + 1000 * (failures ? Math.min(30, 2 ** failures) : Number(part.dataset.every)));
    if (first) continue;
    if (!paused) refresh(part).catch(failed);
    else if (part === live && newer) askForNewer().catch(failed);
  }
}
setInterval(() => tick(Date.now()), 250);
on(window, "load", () => onceSeen(() => {
  for (const part of $$("[data-once]")) refresh(part).catch(() => part.remove());
}));
on(document, "visibilitychange", () => {
  if (document.hidden) return;
  for (const part of due.keys()) due.set(part, 0);
  tick(Date.now());
});

const liveSwitch = $("#live-switch");
function showLive() {
  if (!liveSwitch) return;
  liveSwitch.ariaPressed = !paused;
  liveSwitch.lastElementChild.textContent = paused ? "Paused" : "Live";
}
showLive();

// ---- the tab tells when something needs attention
const icon = $("link[rel=icon]"), plainTitle = document.title;
function attention() {
  const number = Number(($("main [data-attention]") || $("nav [data-attention]"))?.dataset.attention || 0);
  const link = number ? icon?.dataset.attention : icon?.dataset.rest, title = number ? `(${number}) ${plainTitle}` : plainTitle;
  if (link && icon.getAttribute("href") !== link) icon.href = link; // the browser draws its own bars anew for each
  if (document.title !== title) document.title = title;
}
attention();

// ---- what buttons of the shell do
const act = {
  live() { paused = !paused; kept.set("paused", paused ? "yes" : "no"); due.forEach((_, part) => due.set(part, 0)); if (newer) newer.hidden = true; newerTag = ""; showLive(); },
  theme() {
    const chosen = root.dataset.theme, dark = chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    document.cookie = `redrive-theme=${root.dataset.theme};path=/;max-age=31536000;samesite=strict`;
  },
  menu() { $(".side").classList.toggle("open"); },
  help() { $("#shortcuts")?.showModal(); },
  palette() { openPalette(""); },
  link() { copy(($("[data-freezes]") || location).href); },
  none() { pick(0, Infinity, false); },
  keys() { kept.set("keys", kept.get("keys") === "off" ? "on" : "off"); showKeys(); },
  zone() { kept.set("zone", zone ? "local" : "utc"); location.reload(); },
};
function showKeys() {
  const off = kept.get("keys") === "off";
  for (const each of $$("[data-act=keys]")) { each.ariaPressed = !off; each.textContent = `Shortcuts are ${off ? "off" : "on"}`; }
}
showKeys();
on(document, "click", (event) => {
  const button = event.target.closest("[data-act], [data-copy], [data-copies]");
  if (button?.dataset.act) act[button.dataset.act]?.();
  else if (button) copy(button.dataset.copies ? $(`#${button.dataset.copies}`).textContent : button.dataset.copy, button);
  for (const menu of $$("details.menu[open]")) if (!menu.contains(event.target)) menu.open = false;
  if (event.target.matches("dialog")) event.target.close();
});

function say(text) {
  const toast = made("div", { className: "toast", textContent: text });
  $("#toasts")?.append(toast);
  setTimeout(() => toast.remove(), 2500);
}

// Plain HTTP has no clipboard: a field does it.
async function copy(text, button) {
  try { await navigator.clipboard.writeText(text); } catch {
    const field = made("textarea", { value: text });
    document.body.append(field);
    field.select();
    document.execCommand("copy");
    field.remove();
  }
  if (button?.dataset.copies) button.textContent = "Copied"; else say("Copied.");
}

// ---- the palette: names and ids from the server as one types, and pages
const palette = $("#palette");
let turn = 0;
function openPalette(text) {
  if (!palette || palette.open) return;
  palette.showModal();
  if (!$("#pages li")) $("#pages").append(...$$("nav a[data-go]").map(pageRow));
  const field = $("input", palette);
  field.value = text;
  field.focus();
  fillPalette(text);
}
function pageRow(link) {
  const row = made("li", { role: "option", ariaSelected: false });
  row.append($(".i", link).cloneNode(true), made("a", { href: link.href, textContent: link.childNodes[1].data, tabIndex: -1 }), made("kbd", { textContent: `g ${link.dataset.go}` }));
  return row;
}
const options = () => $$("li[role=option]:not([hidden])", palette);
function choose(rows, at) {
  rows.forEach((each, index) => { each.ariaSelected = index === at; });
  rows[at]?.scrollIntoView({ block: "nearest" });
  $("input", palette).setAttribute("aria-activedescendant", rows[at]?.id || "");
}
async function fillPalette(text) {
  const own = ++turn, words = text.toLowerCase().trim().split(/\s+/);
  await new Promise((done) => setTimeout(done, 80));
  if (own !== turn) return;
  if (text.trim()) {
    const answer = await fetch(`${palette.dataset.from}${palette.dataset.from.includes("?") ? "&" : "?"}q=${encodeURIComponent(text)}`).catch(() => null);
    if (own !== turn || !answer?.ok) return;
    $("#found").replaceChildren(...$$(".results li", parsed(await answer.text())));
    for (const each of $$("#found li")) { each.role = "option"; $("a", each).tabIndex = -1; }
  } else $("#found").replaceChildren();
  for (const each of $$("#pages li", palette)) each.hidden = !words.every((word) => each.textContent.toLowerCase().includes(word));
  $$("[role=option]", palette).forEach((each, index) => { each.id = `option-${index}`; });
  choose(options(), 0);
}
on(palette, "input", (event) => fillPalette(event.target.value));
on(palette, "keydown", (event) => {
  const rows = options(), at = rows.findIndex((each) => each.ariaSelected === "true");
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (step) choose(rows, within(at + step, rows.length));
  else if (event.key === "Enter" && rows[at]) { const link = $("a", rows[at]); if (event.ctrlKey || event.metaKey) open(link.href); else link.click(); }
  else return;
  event.preventDefault();
});
for (const name of ["click", "input"]) on($(".find input"), name, (event) => { const text = event.target.value; event.target.value = ""; openPalette(text); });

// ---- rows: j k Enter x X a Esc; a selection takes the primary action over
const rows = () => $$("[data-row]").filter((each) => each.offsetParent !== null);
let cursor = null, anchor = -1;
function moveTo(step) {
  const all = rows();
  if (!all.length) return;
  const at = all.indexOf(document.activeElement?.closest("[data-row]") || cursor);
  const row = all[at < 0 ? 0 : within(at + step, all.length)];
  cursor?.classList.remove("cursor");
  cursor = row;
  row.classList.add("cursor");
  ($("input[type=checkbox]", row) || $("a, button", row))?.focus({ preventScroll: true });
  row.scrollIntoView({ block: "nearest" });
}
const bar = $(".actions"), primary = $("[data-redrive]");
const untouched = { text: primary?.firstElementChild.textContent, disabled: primary?.disabled };
function follow() {
  const boxes = $$(".pick input"), number = boxes.filter((each) => each.checked).length;
  for (const each of boxes) {
    const row = each.closest("[data-row]");
    if (row && each.checked !== (row.ariaSelected === "true")) row.ariaSelected = each.checked;
  }
  const all = $("#pick-all");
  if (all) { all.checked = number && number === boxes.length; all.indeterminate = number && !all.checked; }
  if (!bar || !$("#picked")) return;
  $("#picked").textContent = number ? `${number} selected` : bar.dataset.none;
  for (const each of $$("[data-needs-pick]", bar)) each.disabled = !number;
  for (const each of $$("[data-act=none]", bar)) each.hidden = !number;
  if (!primary) return;
  primary.value = number ? "picked" : "all";
  primary.disabled = number ? false : untouched.disabled;
  primary.firstElementChild.textContent = number ? `Redrive ${number} ${number === 1 ? "message" : "messages"}…` : untouched.text;
}
function pick(from, to, value) {
  rows().slice(Math.min(from, to), Math.max(from, to) + 1).forEach((each) => { const box = $(".pick input", each); if (box) box.checked = value ?? !box.checked; });
  follow();
}
on(document, "change", (event) => {
  if (event.target.id === "pick-all") for (const each of $$(".pick input")) each.checked = event.target.checked;
  if (event.target.matches("#pick-all, [name=id]")) follow();
  if (event.target.matches("[data-submits]")) event.target.form.requestSubmit();
});
follow();

// ---- forms answered while one types: 150 ms after the last key
function markRefused() {
  const refused = $("#refused")?.dataset.field;
  for (const field of $("form[data-live]")?.elements ?? []) {
    field.ariaInvalid = field.name && (field.name === refused || !field.validity.valid) ? "true" : null;
  }
}
for (const form of $$("form[data-live], form[data-search]")) {
  let soon = 0;
  on(form, "input", ({ target }) => {
    if (!target.validity.valid) target.ariaInvalid = "true";
    clearTimeout(soon);
    soon = setTimeout(() => {
      if (form.dataset.search) return searchFor(form);
      const url = `${form.getAttribute("action") || location.pathname}?${new URLSearchParams(new FormData(form))}`;
      live.dataset.fragment = url;
      history.replaceState(null, "", url);
      refresh(live).catch(failed);
    }, 150);
  });
}

// ---- forms that keep their last values
for (const form of $$("form[data-keeps]")) {
  const name = `form ${location.pathname}`, fields = [...form.elements].filter((each) => each.name && each.type !== "radio");
  const last = "filled" in form.dataset ? [] : JSON.parse(kept.get(name) || "[]");
  last.forEach((value, at) => { if (fields[at]) fields[at].value = value; });
  on(form, "submit", () => kept.set(name, JSON.stringify(fields.map((each) => each.value))));
}

// ---- a search goes on, slice by slice, until a page is found, it is stopped, or another is typed
const search = $("#search"), query = $("#q"), letters = () => $("#letters"), FOUND_MAX = 50;
let searchTurn = 0, stopped = false;
async function searchOn(next, looked, found) {
  const own = ++searchTurn, progress = $("progress", search), status = $("[role=status]", search);
  stopped = false;
  search.hidden = progress.parentElement.hidden = false;
  while (!stopped && next && found < FOUND_MAX) {
    const part = $("#slice", parsed(await (await asked(next)).text()));
    if (own !== searchTurn) return;
    const refused = part.dataset.refused || "", note = $("#q-refused");
    if (note) { note.hidden = !refused; note.textContent = refused; query.ariaInvalid = refused ? "true" : null; }
    if (refused) { search.hidden = true; return; }
    if (!found) letters().replaceChildren();
    letters().append(...$$("tr[data-row]", part));
    found += Number(part.dataset.found);
    looked = Number(part.dataset.looked);
    next = part.dataset.next;
    progress.max = Math.max(progress.max, looked);
    progress.value = looked;
    status.textContent = `${found} found among ${looked.toLocaleString("en")} messages looked at${next ? (stopped ? "; stopped" : "; looking on") : ""}.`;
    tellTimes();
  }
  progress.parentElement.hidden = true;
  const onward = $("#next");
  if (onward && next) onward.href = next.replace("/search?", "?");
  else onward?.remove();
  if (!primary) return;
  untouched.disabled = !found;
  untouched.text = next ? "Redrive all that it finds…" : `Redrive the ${found} found…`;
  bar.dataset.none = `${next ? "At least " : ""}${found} found`;
  follow();
}
on($("#search-stop"), "click", () => { stopped = true; });
if (search?.dataset.next) searchOn(search.dataset.next, Number(search.dataset.looked), Number(search.dataset.found)).catch(failed);
function searchFor(form) {
  const text = query.value.trim(), own = $("#pick-q"), facets = $("#facets");
  if (!text) return location.assign(form.dataset.clear);
  const from = new URL(form.dataset.search, location), here = new URL(form.dataset.clear, location);
  for (const each of [from, here]) each.searchParams.set("q", text);
  history.replaceState(null, "", here);
  if (own) { own.disabled = false; own.value = text; }
  $("[value=except]")?.remove();
  searchOn(from, 0, 0).catch(failed);
  if (facets) { facets.dataset.fragment = `${here.pathname}/facets${here.search}`; refresh(facets).catch(failed); }
}
const terms = $("#terms");
if (terms && query) {
  const last = () => query.value.split(/\s+/).pop();
  const suggest = () => {
    for (const each of $$("li", terms)) each.hidden = last() && (!each.dataset.term.startsWith(last()) || each.dataset.term === last());
    terms.hidden = document.activeElement !== query || !$("li:not([hidden])", terms);
  };
  for (const name of ["input", "focus"]) on(query, name, suggest);
  on(query, "blur", () => setTimeout(suggest, 150));
  on(terms, "mousedown", (event) => {
    const row = event.target.closest("li");
    if (!row) return;
    event.preventDefault();
    query.value = query.value.slice(0, query.value.length - last().length) + row.dataset.term;
    suggest();
  });
}

// ---- the preview: a row is read beside the list
const preview = $("#preview");
async function peek(row) {
  const link = row && $("th a", row);
  if (!link) return;
  unmark();
  row.setAttribute("data-open", "");
  const text = await (await asked(link.href)).text();
  if (!row.hasAttribute("data-open")) return;
  preview.replaceChildren(...parsed(text).body.childNodes);
  showPreview(true);
  row.scrollIntoView({ block: "nearest" });
  keepOpen(link.textContent);
  tellTimes();
}
const showPreview = (shows) => { preview.hidden = !shows; preview.parentElement.classList.toggle("peeks", shows); };
const unmark = () => { for (const each of $$("[data-open]")) each.removeAttribute("data-open"); };
function keepOpen(name) {
  const url = new URL(location);
  url.searchParams.delete("open");
  if (name) url.searchParams.set("open", name);
  history.replaceState(null, "", url);
}
function walk(step) {
  const all = rows().filter((each) => letters()?.contains(each));
  const at = all.findIndex((each) => each.hasAttribute("data-open"));
  peek(all[at < 0 ? 0 : within(at + step, all.length)]).catch(failed);
}
const canPeek = () => preview && matchMedia("(min-width: 64rem)").matches;
act.before = () => walk(-1);
act.after = () => walk(1);
act.shut = () => { showPreview(false); unmark(); keepOpen(""); };
on(document, "click", (event) => {
  const row = event.target.closest("#letters [data-row]");
  if (row && canPeek() && !event.target.closest("a, input, button")) peek(row).catch(failed);
});
if (canPeek()) peek($(`#letter-${CSS.escape(new URL(location).searchParams.get("open"))}`)).catch(failed);

// ---- signing in by a link
const login = $("#login");
if (login && location.hash.length > 1) {
  login.elements.token.value = location.hash.slice(1);
  history.replaceState(null, "", location.pathname);
  for (const field of ["key", "secret"]) login.elements[field].required = false;
  login.submit();
}

// ---- keys: letters only, off while one types; whatever a key does is a link or a button too
let leader = 0;
const press = (key) => $(`[data-key="${CSS.escape(key)}"]:not(:disabled)`)?.click();
const does = {
  g() { leader = Date.now(); },
  "/"() { if ($("#q")) $("#q").focus(); else openPalette(""); },
  "?": act.help, t: act.theme, y: act.link,
  p() { if ($('[data-key="p"]')) press("p"); else act.live(); },
  j: () => moveTo(1), k: () => moveTo(-1),
  x() { anchor = rows().indexOf(cursor); $("input[type=checkbox]", document.activeElement?.closest("[data-row]") || cursor || root)?.click(); },
  X() { pick(Math.max(0, anchor), rows().indexOf(cursor), true); },
  a() { pick(0, Infinity, true); },
  n() { if (canPeek()) walk(1); else press("n"); },
  b() { if (canPeek()) walk(-1); else press("b"); },
  u() { if ($('[data-key="u"]')) press("u"); else $$(".crumbs a").pop()?.click(); },
};
on(document, "keydown", (event) => {
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") { event.preventDefault(); return openPalette(""); }
  if (event.ctrlKey || event.metaKey || event.altKey || kept.get("keys") === "off" || $("dialog[open]")) return;
  const { target, key } = event;
  if (key === "Escape") { target.blur?.(); act.none(); return; }
  if (target.matches(TYPED)) return;
  if (key === "Enter") {
    const link = target.matches("input[type=checkbox]") && $("a", target.closest("[data-row]") || root);
    if (link) { event.preventDefault(); link.click(); }
    return;
  }
  if (Date.now() - leader < 1500) {
    leader = 0;
    const link = $(`nav a[data-go="${CSS.escape(key)}"]`);
    if (link) { event.preventDefault(); link.click(); return; }
  }
  if (does[key]) { event.preventDefault(); does[key](); } else if (key.length === 1) press(key);
});
$("[data-first]")?.focus({ preventScroll: true }); // a plan's primary button: Enter starts it

// ---- charts: a cross-hair reads the values of the table below
for (const chart of $$("svg.chart[data-series]")) {
  const series = chart.dataset.series.split("|").map((each) => each.split(" ")), times = chart.dataset.times.split(" ");
  const line = $(".cross", chart), words = [...$$(".legend b", chart.closest("figure")), $(".at", chart.closest("figure"))];
  const before = words.map((each) => each.textContent);
  let index = times.length - 1;
  const tell = (texts) => words.forEach((each, which) => { each.textContent = texts[which]; });
  const show = (at) => {
    index = within(at, times.length);
    for (const name of ["x1", "x2"]) line.setAttribute(name, `${100 * index / Math.max(1, times.length - 1)}%`);
    line.style.visibility = "visible";
    tell([...series.map((each) => each[index]), times[index]]);
  };
  on(chart, "pointermove", (event) => {
    const box = chart.getBoundingClientRect();
    show(Math.round((event.clientX - box.left) / box.width * (times.length - 1)));
  });
  on(chart, "keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step) return;
    event.preventDefault();
    show(index + step);
  });
  for (const name of ["pointerleave", "blur"]) on(chart, name, () => { line.style.visibility = ""; tell(before); });
}
