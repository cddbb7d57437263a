// When the job that a page follows has ended (HX-Refresh), its notice is replaced at once, and then
// the content of the page. Nothing is loaded anew, so no navigation is called off. The content
// waits while somebody presses something, is on the way to another page, or has typed.

// After a key or a press; somebody who tabs to a button is not sent back to the top.
const QUIET_MS = 1000;
// A form or link leads elsewhere; until that page is here, the content stays as it was.
const LEAVING_MS = 30000;
const RETRY_MS = 1000;

const held = new Set();
const typed = new Set();
let lastInput = -Infinity;
let leavingSince = -Infinity;

function begin(what) {
  return (event) => {
    held.add(what(event));
    lastInput = event.timeStamp;
  };
}

function end(what) {
  return (event) => {
    held.delete(what(event));
    lastInput = event.timeStamp;
  };
}

const pointer = (event) => event.pointerId;
const key = (event) => event.code;
const options = { capture: true, passive: true };
window.addEventListener("pointerdown", begin(pointer), options);
for (const name of ["pointerup", "pointercancel"]) window.addEventListener(name, end(pointer), options);
window.addEventListener("keydown", begin(key), options);
window.addEventListener("keyup", end(key), options);
window.addEventListener("blur", () => held.clear());

window.addEventListener("input", ({ target }) => target.form && typed.add(target));

// At the window, after all who may have kept the page where it is.
window.addEventListener("submit", (event) => {
  if (!event.defaultPrevented) leavingSince = event.timeStamp;
});
window.addEventListener("click", (event) => {
  const link = event.target.closest?.("a[href]");
  const leads = link && !link.download && !link.target && link.getAttribute("href")[0] !== "#";
  if (leads && !event.defaultPrevented) leavingSince = event.timeStamp;
});
window.addEventListener("pageshow", () => {
  leavingSince = -Infinity;
});

function isUnderHand(now) {
  return held.size > 0 || now - lastInput < QUIET_MS || now - leavingSince < LEAVING_MS;
}

function isUnsent(field) {
  const ticks = ["checkbox", "radio"].includes(field.type);
  return ticks ? field.checked !== field.defaultChecked : field.value !== field.defaultValue;
}

function hasUnsent() {
  return [...typed].some((field) => field.isConnected && isUnsent(field));
}

// The notices of the jobs that ended, and whether the content is about to follow.
const ended = new Set();
let isFollowing = false;

document.addEventListener("htmx:beforeOnLoad", (event) => {
  const { xhr, elt } = event.detail;
  if (xhr.getResponseHeader("HX-Refresh") !== "true") return;
  event.preventDefault();
  ended.add(elt.id);
  htmx.swap(elt, xhr.response, { swapStyle: "outerHTML" });
  if (!isFollowing) follow();
});

async function follow() {
  isFollowing = true;
  while (hasUnsent() || isUnderHand(performance.now())) {
    document.querySelector("#news")?.toggleAttribute("hidden", !hasUnsent());
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
  }
  isFollowing = false;
  const jobs = [...ended];
  ended.clear();
  try {
    const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
    if (isLogin(answer.url)) return showLogin();
    if (!answer.ok) throw new Error(`the site answered ${answer.status}`);
    if (answer.redirected) return location.assign(answer.url);
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    // Pressed or typed meanwhile: the content is asked for again.
    if (hasUnsent() || isUnderHand(performance.now())) return retry(jobs);
    if (needsScripts(page)) return location.reload();
    replaceContent(page, jobs);
  } catch {
    document.querySelector("#news")?.removeAttribute("hidden");
  }
}

function retry(jobs) {
  for (const id of jobs) ended.add(id);
  if (!isFollowing) follow();
}

// A chart needs libraries that a page without one does not load.
function needsScripts(page) {
  const sources = (root) => [...root.querySelectorAll("script[src]")].map((each) => each.getAttribute("src"));
  const loaded = new Set(sources(document));
  return sources(page).some((source) => !loaded.has(source));
}

const PARTS = ["nav.stages.wide", "nav.stages.narrow", "#content"];

function replaceContent(page, jobs) {
  const focused = document.activeElement?.id;
  for (const part of PARTS) {
    const [before, after] = [document.querySelector(part), page.querySelector(part)];
    if (before && after) htmx.swap(before, after.outerHTML, { swapStyle: "outerHTML" });
  }
  document.title = page.title;
  typed.clear();
  if (document.activeElement !== document.body) return;
  // A screen reader reads what the job came to; where the page was scrolled to, it stays.
  const [result] = jobs.map((id) => document.getElementById(id)).filter(Boolean);
  if (result) result.tabIndex = -1;
  (document.getElementById(focused) || result)?.focus({ preventScroll: true });
}

// Where the session has ended, what comes in answer is the page on which one logs in: it is not
// put into this page, which says so, and keeps what has been written to be copied.
function isLogin(address) {
  const login = document.querySelector("#logged-out a")?.pathname;
  return new URL(address).pathname === login;
}

function showLogin() {
  document.querySelector("#logged-out").hidden = false;
}

document.addEventListener("htmx:beforeSwap", (event) => {
  if (!isLogin(event.detail.xhr.responseURL)) return;
  event.detail.shouldSwap = false;
  showLogin();
});
