// The worker site's page: local times, the time left for a test, storage for the page in the
// frame, and moving on after a page in it has sent its answers by itself.

import { ServerClock, duration, everySecond, secondsUntil } from "./time_left.js";

// As storage.js has it, with room for the quotes around.
const LARGEST_STORAGE = 500_000;

function showLocalTimes() {
  for (const element of document.querySelectorAll("time[datetime]")) {
    const moment = new Date(element.dateTime);
    const isToday = moment.toDateString() === new Date().toDateString();
    const dateStyle = isToday && element.closest("#receipt") ? undefined : "medium";
    element.textContent = moment.toLocaleString([], { dateStyle, timeStyle: "short" });
  }
}

// The test of a qualification; work.js has the time of a HIT.
function countDown(element) {
  const clock = new ServerClock(element.dataset.now);
  const texts = Object.fromEntries(Object.entries(element.dataset));
  const timer = everySecond(() => {
    const seconds = secondsUntil(element.dataset.deadline, clock);
    element.textContent = seconds > 0 ? duration(seconds, texts) : texts.over;
    if (seconds === 0) clearInterval(timer);
  });
}

// Who comes back from there sees this page as the browser kept it, ready to submit once more:
// then the server is asked how things stand.
function moveOnAfterSubmission(next) {
  const frame = document.getElementById("task");
  let isLeaving = false;
  const key = `assay:submitted:${window.location.pathname}`;
  const isBack = () => {
    if (!sessionStorage.getItem(key)) return false;
    sessionStorage.removeItem(key);
    window.location.reload();
    return true;
  };
  if (isBack()) return; // before the frame, which the browser kept as well, tells it once more
  window.addEventListener("pageshow", (event) => event.persisted && isBack());
  window.addEventListener("message", (event) => {
    if (event.source !== frame.contentWindow) return;
    if (event.data?.type !== "assay:submitted") return;
    if (isLeaving) return; // a second POST could accept a second HIT
    isLeaving = true;
    next.submit();
    sessionStorage.setItem(key, "yes");
  });
}

// What the page in the frame stores is kept in this tab, as text that nothing here reads. Where
// there is some, another frame takes the place of the first, with it for a name: storage.js
// finds it there. The token tells the page that has it from the one before, which knew nothing.
function lendStorage(first) {
  const key = `assay:storage:${first.dataset.storage}`;
  const kept = sessionStorage.getItem(key);
  const token = kept ? String(Math.random()) : "";
  const frame = kept ? first.cloneNode() : first;
  window.addEventListener("message", (event) => {
    if (event.source !== frame.contentWindow || event.data?.type !== "assay:stored") return;
    const { items } = event.data;
    if (event.data.token !== token || typeof items !== "string" || items.length > LARGEST_STORAGE) return;
    try { sessionStorage.setItem(key, items); } catch { /* full of other requesters' */ }
  });
  if (!kept) return;
  frame.name = JSON.stringify({ token, items: kept });
  first.replaceWith(frame);
}

// The choice is kept as soon as it is made, so that it holds however the work ends.
function keepChoice(form) {
  form.addEventListener("change", () => {
    fetch(form.action, { method: "POST", body: new FormData(form), redirect: "manual" });
  });
}

showLocalTimes();
const timeLeft = document.getElementById("time-left");
if (timeLeft?.dataset.deadline) countDown(timeLeft);
const lent = document.querySelector("iframe[data-storage]");
if (lent) lendStorage(lent);
const next = document.getElementById("next-hit");
if (next) moveOnAfterSubmission(next);
const choice = document.getElementById("auto-accept");
if (choice) keepChoice(choice);
document.getElementById("complaints")?.focus();
document.getElementById("receipt")?.focus();
