// The review desk's keys. Every key presses a button or follows a link that is on the page, so
// that without this script the page does the same.

const FIELDS = "input, textarea, select, [contenteditable]";

function pressed(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
  if (event.key === "Escape") return press("[data-cancel]", event);
  const desk = document.querySelector("[data-letter-keys]");
  if (desk?.dataset.letterKeys !== "on" || document.activeElement?.closest(FIELDS)) return;
  const key = event.key.toLowerCase();
  if (/^[a-z?]$/.test(key)) press(`[data-key="${key}"]`, event);
}

function press(selector, event) {
  const target = document.querySelector(selector);
  if (!target || target.disabled) return;
  event.preventDefault();
  target.click();
}

function begin(link) {
  link.addEventListener("click", (event) => {
    const text = document.querySelector(".act textarea");
    if (!text) return;
    event.preventDefault();
    text.value = link.dataset.reason;
    text.focus();
  });
}

// The queue may be in another order when the page is loaded anew; what is read stays.
function keepSubmission() {
  const address = document.querySelector("[data-address]")?.dataset.address;
  if (address && !location.search.includes("reason=")) history.replaceState(history.state, "", address);
}

function focusResult() {
  const result = document.querySelector("main [role=status]:not([hidden])");
  if (!result || document.querySelector(".act")) return;
  result.tabIndex = -1;
  result.focus();
}

// A second press while the first is under way would decide on what is not on the page yet.
function once(form) {
  form.addEventListener("submit", (event) => {
    if (form.dataset.sent) event.preventDefault();
    form.dataset.sent = "yes";
  });
}

document.addEventListener("keydown", pressed);
window.addEventListener("pageshow", () => {
  for (const form of document.forms) delete form.dataset.sent;
});
// Again when the content of the page was replaced (reload.js).
document.addEventListener("htmx:load", ({ target }) => {
  target.querySelectorAll("[data-reason]").forEach(begin);
  target.querySelectorAll(".dock form").forEach(once);
});
keepSubmission();
focusResult();
