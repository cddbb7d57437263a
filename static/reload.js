// A page that follows a job is loaded anew when the job is done (HX-Refresh), but never under
// somebody's hands: a press that is under way would be lost, and so would what they have typed.
// The page asks again a second later, so that it is enough to let one reload pass.

// After a key or a press; somebody who tabs to a button is not sent back to the top.
const QUIET_MS = 1000;
// A form or link leads elsewhere; until that page is here, a reload would call it off.
const LEAVING_MS = 30000;
// Of which job a page saw the end when it was loaded anew.
const ENDED = "assay:ended";

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

document.addEventListener("htmx:beforeOnLoad", (event) => {
  if (event.detail.xhr.getResponseHeader("HX-Refresh") !== "true") return;
  const waits = [...typed].some((field) => field.isConnected && isUnsent(field));
  if (waits || isUnderHand(performance.now())) event.preventDefault();
  document.querySelector("#news")?.toggleAttribute("hidden", !waits);
  if (!event.defaultPrevented) sessionStorage.setItem(ENDED, `${location.pathname}#${event.detail.elt.id}`);
});

// The page that was loaded anew has its focus on what the job came to, so that a screen reader
// reads it; where the page was scrolled to, it stays.
const [path, id] = sessionStorage.getItem(ENDED)?.split("#") ?? [];
sessionStorage.removeItem(ENDED);
const ended = path === location.pathname && id && document.getElementById(id);
if (ended && document.activeElement === document.body) {
  ended.tabIndex = -1;
  ended.focus({ preventScroll: true });
}

// Where the session has ended, what comes in answer is the page on which one logs in: it is not
// put into this page, which says so, and keeps what has been written to be copied.
document.addEventListener("htmx:beforeSwap", (event) => {
  const notice = document.querySelector("#logged-out");
  const login = notice?.querySelector("a").pathname;
  if (new URL(event.detail.xhr.responseURL).pathname !== login) return;
  event.detail.shouldSwap = false;
  notice.hidden = false;
});
