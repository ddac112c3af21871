// The console's own script: the clock that asks again, the theme, and the keyboard. Everything works without it.
"use strict";

const kept = {
  get(name) { try { return localStorage.getItem(name); } catch { return null; } },
  set(name, value) { try { localStorage.setItem(name, value); } catch { /* private windows keep nothing */ } },
};
const live = document.getElementById("live");
const trouble = document.getElementById("trouble");

// ---- times: pages name moments, so that one that has not changed is not sent again; they are told here, by the server's clock

const shell = document.body.dataset;
const SECOND = 1000, MINUTE = 60 * SECOND, HOUR = 60 * MINUTE, DAY = 24 * HOUR;
const UNITS = [["d", DAY], ["h", HOUR], ["min", MINUTE], ["s", SECOND]];
let serverSaid = Number(shell.now), saidAt = performance.now();

function serverNow() { return serverSaid + (shell.clock === "system" ? performance.now() - saidAt : 0); }

function span(ms) {
  const parts = [];
  for (const [unit, length] of UNITS) {
    if (ms >= length) parts.push(`${Math.floor(ms / length)} ${unit}`);
    ms %= length;
  }
  return parts.slice(0, 2).join(" ");
}

function ago(at, now) {
  const away = Math.abs(now - at);
  if (away >= DAY) return new Date(at).toISOString().slice(0, 16).replace("T", " ") + "Z";
  if (away < SECOND) return "now";
  const words = span(away >= 10 * MINUTE ? away - away % MINUTE : away);
  return at <= now ? `${words} ago` : `in ${words}`;
}

function tellTimes() {
  const now = serverNow(), asked = new Date(serverSaid).toISOString();
  const tell = (css, text) => {
    for (const each of document.querySelectorAll(css)) {
      const told = text(each);
      if (each.textContent !== told) each.textContent = told;
    }
  };
  tell("time[data-ago]", (each) => ago(Date.parse(each.dateTime), now));
  tell("time[data-as-of]", () => `${asked.slice(11, 19)}Z`);
  tell("[data-clock-time]", () => `${asked.slice(0, 19).replace("T", " ")}Z`);
}

function heardTime(value) {
  if (!value) return;
  serverSaid = Number(value);
  saidAt = performance.now();
}

tellTimes();
setInterval(() => { if (!paused && !document.hidden) tellTimes(); }, 10 * SECOND);

// ---- asking again: only while somebody looks, nothing is edited, and the last answer came

let paused = kept.get("redrive-paused") === "yes";
let failures = 0;
let nextAt = 0;

function seconds() { return Number(live?.dataset.every || 0); }

function isEditing() {
  const focused = document.activeElement;
  return Boolean(focused && focused.closest("#live") && focused.matches("input, select, textarea"));
}

function tick(now) {
  if (!seconds() || document.hidden || now < nextAt || isEditing()) return;
  nextAt = now + 1000 * (failures ? Math.min(30, 2 ** failures) : seconds());
  if (paused) askForNewer().catch(() => failed(""));
  else live.dispatchEvent(new CustomEvent("tick"));
}

// ---- paused, a list stays as it is, and says how many are newer

const newer = document.getElementById("newer");
let newerTag = "none";

function rowNames(root) {
  return [...root.querySelectorAll("[data-row]")].map((each) => each.id || each.querySelector("a")?.getAttribute("href"));
}

async function askForNewer() {
  const answer = await fetch(live.getAttribute("hx-get"), { headers: { "HX-Request-Type": "partial", "HX-PTag": newerTag } });
  answered({ detail: { ctx: { response: answer } } });
  if (answer.status !== 200 || !paused) return;
  newerTag = answer.headers.get("HX-PTag");
  const known = new Set(rowNames(live));
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const said = Number(page.querySelector("[data-newer]")?.dataset.newer || 0);
  const number = said || rowNames(page).filter((name) => !known.has(name)).length;
  newer.hidden = !number;
  newer.firstElementChild.textContent = `${number} newer: show ${number === 1 ? "it" : "them"}`;
}

function showNewer() {
  newer.hidden = true;
  newerTag = "none";
  live.dispatchEvent(new CustomEvent("tick"));
}
newer?.firstElementChild.addEventListener("click", showNewer);

if (seconds()) {
  nextAt = Date.now() + 1000 * seconds();
  setInterval(() => tick(Date.now()), 250);
  document.addEventListener("visibilitychange", () => { if (!document.hidden) { nextAt = 0; tick(Date.now()); } });
}

function answered(event) {
  const response = event.detail?.ctx?.response;
  if (response === undefined) return;
  if (response.status >= 400) return failed(`The server answered ${response.status}.`);
  failures = 0;
  trouble.hidden = true;
  heardTime(response.headers.get("X-Redrive-Now"));
  if (!paused) tellTimes();
}

function failed(why) {
  failures += 1;
  trouble.textContent = `${why || "No answer."} Trying again; the page shows what it last had.`;
  trouble.hidden = false;
}

document.addEventListener("htmx:after:request", answered);
document.addEventListener("htmx:after:swap", tellTimes);
document.addEventListener("htmx:error", () => failed(""));

const liveSwitch = document.getElementById("live-switch");
function showLive() {
  if (!liveSwitch) return;
  liveSwitch.hidden = false;
  liveSwitch.setAttribute("aria-pressed", String(!paused));
  liveSwitch.textContent = paused ? "Paused" : `Live ${seconds()} s`;
}
function switchLive() {
  paused = !paused;
  kept.set("redrive-paused", paused ? "yes" : "no");
  nextAt = 0;
  if (newer) newer.hidden = true;
  newerTag = "none";
  showLive();
}
liveSwitch?.addEventListener("click", switchLive);
showLive();

// ---- on a narrow screen the navigation is a strip, of which the room that one is in is to be seen

document.querySelector("nav a[aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });

// ---- theme

const themeSwitch = document.getElementById("theme-switch");
function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}
function switchTheme() {
  const theme = isDark() ? "light" : "dark";
  document.documentElement.dataset.theme = theme;
  kept.set("redrive-theme", theme);
}
if (themeSwitch) {
  themeSwitch.hidden = false;
  themeSwitch.addEventListener("click", switchTheme);
}

// ---- copying what is used elsewhere; where a browser has no clipboard for us (plain HTTP), the text is selected

async function copy(button) {
  const source = document.getElementById(button.dataset.copies);
  let told = "Copied";
  try { await navigator.clipboard.writeText(source.textContent); }
  catch { getSelection().selectAllChildren(source); told = "Selected"; }
  button.textContent = told;
}
document.addEventListener("click", (event) => {
  const button = event.target.closest("button[data-copies]");
  if (button) copy(button);
});

// ---- picks

// A selection takes the primary action over, for its button and for the key that presses it alike.
const picked = document.getElementById("picked");
const primary = document.querySelector("[data-redrive]");
const untouched = { text: primary?.textContent, disabled: primary?.disabled };
function countPicks() {
  if (!picked) return;
  const number = document.querySelectorAll('input[name="id"]:checked').length;
  picked.textContent = number ? `${number} selected` : picked.parentElement.dataset.none;
  for (const each of document.querySelectorAll("[data-needs-pick]")) each.disabled = !number;
  if (!primary) return;
  primary.value = number ? "picked" : "all";
  primary.disabled = number ? false : untouched.disabled;
  primary.textContent = number ? `Redrive ${number} ${number === 1 ? "message" : "messages"}…` : untouched.text;
}
document.addEventListener("change", countPicks);
countPicks();

// ---- the lab: another plan has other numbers, and a refusal belongs to a field

const lab = document.getElementById("lab");
function markRefused() {
  const refused = document.getElementById("refused")?.dataset.field;
  for (const field of lab.elements) {
    if (field.name && (field.name === refused || !field.validity.valid)) field.setAttribute("aria-invalid", "true");
    else field.removeAttribute("aria-invalid");
  }
}
if (lab) document.addEventListener("htmx:after:swap", markRefused);
// A number beyond its bounds is marked as it is typed; the server, asked after a pause in typing, says why.
lab?.addEventListener("input", ({ target }) => { if (!target.validity.valid) target.setAttribute("aria-invalid", "true"); });

document.getElementById("plan")?.addEventListener("change", (event) => event.target.form.requestSubmit());

// ---- a search goes on by itself, slice by slice, until a page is found or somebody stops it

const search = document.getElementById("search");
const FOUND_MAX = 50;
let searching = Boolean(search?.dataset.next);

async function slice(url) {
  const answer = await fetch(url, { headers: { "HX-Request-Type": "partial" } });
  if (!answer.ok) throw new Error(`The server answered ${answer.status}.`);
  return new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("slice");
}

async function searchOn() {
  const bar = search.querySelector("progress");
  const rows = document.getElementById("letters");
  let next = search.dataset.next, looked = Number(search.dataset.looked), found = Number(search.dataset.found);
  bar.parentElement.hidden = false;
  while (searching && next && found < FOUND_MAX) {
    const part = await slice(next);
    if (found === 0 && Number(part.dataset.found)) rows.replaceChildren();
    rows.append(...part.querySelectorAll("[data-row]"));
    found += Number(part.dataset.found);
    looked = Number(part.dataset.looked);
    next = part.dataset.next;
    bar.max = Math.max(bar.max, looked);
    bar.value = looked;
    const more = next ? (searching ? "; looking on" : "; stopped") : "";
    search.querySelector("[role=status]").textContent = `${found} found among ${looked.toLocaleString("en")} messages looked at${more}.`;
  }
  bar.parentElement.hidden = true;
  const onward = document.getElementById("next");
  if (onward && next) onward.href = next.replace("/search?", "?");
  else onward?.remove();
}

document.getElementById("search-stop")?.addEventListener("click", () => { searching = false; });
if (searching) searchOn().catch((error) => failed(error.message));

// ---- signing in by a link: its token is behind the #, which no log has

const login = document.getElementById("login");
if (login && location.hash.length > 1) {
  login.elements.token.value = location.hash.slice(1);
  history.replaceState(null, "", location.pathname);
  for (const field of ["key", "secret"]) login.elements[field].required = false;
  login.submit();
}

// ---- keyboard

let keysOn = kept.get("redrive-keys") !== "off";
let going = 0;
const keysSwitch = document.getElementById("keys-switch");
function showKeys() {
  if (!keysSwitch) return;
  keysSwitch.hidden = false;
  keysSwitch.setAttribute("aria-pressed", String(keysOn));
  keysSwitch.textContent = keysOn ? "Shortcuts are on" : "Shortcuts are off";
}
keysSwitch?.addEventListener("click", () => { keysOn = !keysOn; kept.set("redrive-keys", keysOn ? "on" : "off"); showKeys(); });
showKeys();

function row(step) {
  const rows = [...document.querySelectorAll("[data-row]")];
  const at = rows.indexOf(document.activeElement?.closest("[data-row]"));
  const target = rows[Math.max(0, Math.min(rows.length - 1, at < 0 ? 0 : at + step))];
  (target?.querySelector('input[type="checkbox"]') || target?.querySelector("a"))?.focus();
}
function press(key) {
  const target = document.querySelector(`[data-key="${key}"]`);
  if (target) target.click();
}
const does = {
  "/": () => document.getElementById("q")?.focus(),
  "?": () => { location.href = document.querySelector("header a[data-help]").href; },
  j: () => row(1),
  k: () => row(-1),
  x: () => document.activeElement?.closest("tr")?.querySelector('input[type="checkbox"]')?.click(),
  r: () => press("r"),
  e: () => press("e"),
  u: () => press("u"),
  p: () => (document.querySelector('[data-key="p"]') ? press("p") : switchLive()),
  t: switchTheme,
  g: () => { going = Date.now(); },
};
document.addEventListener("keydown", (event) => {
  if (!keysOn || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape") return document.activeElement?.blur();
  const inField = event.target.matches('input:not([type="checkbox"]):not([type="radio"]), select, textarea');
  if (inField) return;
  if (event.key === "Enter" && event.target.matches('input[type="checkbox"]')) {
    const link = event.target.closest("[data-row]")?.querySelector("a");
    if (link) { event.preventDefault(); link.click(); }
    return;
  }
  if (going && Date.now() - going < 1500) {
    going = 0;
    const link = document.querySelector(`nav a[data-go="${CSS.escape(event.key)}"]`);
    if (link) { event.preventDefault(); link.click(); return; }
  }
  const act = does[event.key];
  if (act) { event.preventDefault(); act(); }
});
