// The page around the frame, while a HIT is worked on: gives the frame room, keeps what is entered
// in it, sends it, and says how long there is. docs/marketplace.md has the messages.

import { Drafts, post } from "./drafts.js";
import { Submission } from "./submission.js";
import { ServerClock, duration, everySecond, fill, secondsUntil } from "./time_left.js";

const TALLEST = 100_000, READ_MS = 30_000;
const find = (selector, root = document) => root.querySelector(selector);
const frame = () => find("#task"); // another may take its place (see worker.js)
const work = find("#work").dataset;
const state = JSON.parse(find("#state")?.textContent ?? "{}");
const texts = Object.fromEntries(
  [...(find("#work-texts")?.content.children ?? [])].map((each) => [each.id, each.textContent]));
const timeOf = (moment) => new Date(moment).toLocaleTimeString([], { timeStyle: "short" });

// One line above the work says how things stand; its buttons say what can be done.
const line = find("#work-state");
let passing = null;
function say(text, { kind = "", buttons = [], focus = false, isPassing = false } = {}) {
  clearTimeout(passing);
  line.className = `notice ${kind}`;
  line.hidden = !text;
  find("p", line).textContent = text;
  find(".row", line).replaceChildren(...buttons.map(([label, action]) => {
    const button = document.createElement(typeof action === "string" ? "a" : "button");
    button.textContent = label;
    if (typeof action === "string") Object.assign(button, { href: action, className: "button" });
    else Object.assign(button, { onclick: action, type: "button" });
    return button;
  }));
  if (focus) line.focus();
  if (isPassing) passing = setTimeout(pass, READ_MS);
}
// What the clock shows as well goes once it has been read, but not from under the worker's hands.
function pass() {
  if (!line.contains(document.activeElement)) return say("");
  passing = setTimeout(pass, READ_MS);
}
const close = [texts.close, () => say("")];

const tell = (message) => frame()?.contentWindow.postMessage(message, "*");
const standing = { isOver: false };

// Room

function giveRoom(height) {
  const pixels = Math.min(TALLEST, Math.ceil(Number(height)));
  if (pixels > 0) frame().style.setProperty("--content-height", `${pixels}px`);
}

// The frame has all of the window but the header while something in it is enlarged.
function enlarge(isOn) {
  if (isOn === document.body.classList.contains("enlarged")) return;
  if (isOn) standing.scroll = scrollY;
  document.body.classList.toggle("enlarged", isOn);
  if (!isOn) scrollTo(0, standing.scroll);
}

// A part of the frame comes into view; within the frame alone its own scrolling does it.
function show(top, height) {
  const start = frame().getBoundingClientRect().top + scrollY;
  if (document.documentElement.scrollHeight <= innerHeight + 1) return;
  scrollTo(0, Math.max(0, start + Number(top) - Math.max(16, (innerHeight - Number(height)) / 2)));
}

const heard = {
  "assay:hello": () => {
    // Keys answer the task at once, except if the worker is elsewhere on the page.
    if (document.activeElement === document.body) frame().focus({ preventScroll: true });
    // A page that we speak with displays what was sent: it need not be read twice.
    if (state.answer) find("#received")?.removeAttribute("open");
    tell({
      type: "assay:work", version: 1, now: state.now, answer: state.answer,
      drafts: drafts?.known ?? [], isOver: standing.isOver, isLast: state.is_last,
    });
    if (drafts?.earlier && !standing.isOver) say(texts.earlier, { buttons: [[texts.restore, () => {
      tell({ type: "assay:restore", draft: drafts.earlier });
      drafts.earlier = null;
      say("");
    }], close] });
  },
  "assay:height": ({ height }) => giveRoom(height),
  "assay:enlarge": ({ isOn }) => enlarge(isOn === true),
  "assay:show": ({ top, height }) => show(top, height),
  "assay:draft": ({ draft, progress }) => drafts?.entered(draft, progress),
  "assay:merged": () => say(texts.merged, { buttons: [close] }),
  "assay:submit": ({ fields }) => {
    tell({ type: "assay:sending" });
    submission?.send(Object(fields));
  },
  "assay:report": ({ text }) => reportProblem(String(text).slice(0, 500)),
};
addEventListener("message", (event) => {
  if (frame() && event.source === frame().contentWindow) heard[event.data?.type]?.(event.data);
});

// Forward shortcut keys to the task if focus is on no control, such as after a receipt.
addEventListener("keydown", ({ key, shiftKey, ctrlKey, metaKey, altKey, repeat, target }) => {
  if (!frame() || (target !== document.body && target.id !== "receipt") || !/^([\da-z?]|Enter)$/i.test(key)) return;
  frame().focus({ preventScroll: true });
  tell({ type: "assay:key", key, shiftKey, ctrlKey, metaKey, altKey, repeat });
});

// The panel closes as the worker goes on elsewhere: on the page, in the task (blur) or by Escape.
const more = find("details.more");
for (const name of ["click", "focusin", "keydown", "blur"]) addEventListener(name, ({ type, key, target }) => {
  if (!more?.open || (type === "keydown" ? key !== "Escape" : type !== "blur" && more.contains(target))) return;
  if (type === "keydown") find("summary", more).focus();
  more.open = false;
});

// Time

const clock = state.now && new ServerClock(state.now);
let timer = null;

function follow(data) {
  clock.set(data.now);
  Object.assign(state, { deadline: data.deadline, due: data.due, more_seconds: data.more_seconds });
}

const moreButton = () => [
  fill(texts.more, { time: duration(state.more_seconds, texts) }), () => addTime(true)];

// A participant's time is over when their recruiter says so; what is sent soon after is taken still.
function tick() {
  if (!secondsUntil(state.deadline, clock)) return end();
  const seconds = secondsUntil(state.due ?? state.deadline, clock);
  find("#time-left").textContent = seconds ? duration(seconds, texts) : texts.over;
  const due = [0, 60, standing.warnAt].filter((at) => seconds <= at)[0];
  if (due === undefined || due === standing.warned) return;
  standing.warned = due;
  if (submission?.isSending) return;
  if (!seconds) return say(texts["send-now"], { kind: "error", buttons: [close] });
  say(fill(texts["soon-over"], { time: duration(seconds, texts) }), {
    kind: "warning", buttons: [...(state.more_seconds ? [moreButton()] : []), close], isPassing: true,
  });
}

async function addTime() {
  const response = await post(work.moreTime, {}).catch(() => null);
  const data = await response?.json().catch(() => null);
  if (!response?.ok) return data && say(data.error, { kind: "warning", buttons: [close] });
  follow(data);
  standing.warned = null;
  find("#more-time")?.remove();
  const time = duration(secondsUntil(state.deadline, clock), texts);
  say(fill(texts.added, { time }), { kind: "success", buttons: [close], focus: true, isPassing: true });
}

function end(text = texts["time-over"]) {
  find("#time-left").textContent = texts.over;
  clearInterval(timer);
  standing.isOver = true;
  tell({ type: "assay:over" });
  drafts?.keep();
  if (saved) saved.textContent = drafts ? texts.here : "";
  submission?.stop();
  say(text, { kind: "error", buttons: [[texts.contact, find("a.contact").href], [texts.list, work.groups]] });
}

// What the worker found broken goes to the requester at once.
async function reportProblem(text) {
  const response = await post(work.report, { text }).catch(() => null);
  if (!response?.ok) say(texts["not-reported"], { kind: "warning", buttons: [close] });
}

// Answers

// Participants have no password: they come back by their link.
const signIn = () => work.signIn ? [texts["sign-in"], work.signIn] : close;
const saved = find("#saved");
const drafts = work.draft && new Drafts(work.draft, work.assignment, work.owner, state, {
  saving: () => { saved.textContent = texts.saving; },
  saved: () => { saved.textContent = texts.saved; },
  here: () => { saved.textContent = texts.here; },
  state: follow,
  other: (draft) => tell({ type: "assay:draft", draft }),
  signedOut: () => {
    // What is sent needs no session; a draft's late answer must not hide the receipt.
    if (!submission?.isSending) say(texts["signed-out"], { kind: "warning", buttons: [signIn()] });
  },
  closed: (reason, code) => {
    if (submission.isSending || standing.isOver) return;
    if (code === "time_over") return end();
    clearInterval(timer);
    tell({ type: "assay:over" });
    say(reason ?? texts["submitted-already"], { kind: "warning", buttons: [[texts.look, work.submitted]] });
  },
});

const submission = work.submit && new Submission(work.submit, work.assignment, {
  sending: () => say(texts.sending),
  waiting: (n) => say(fill(texts.waiting, { n }), {
    kind: "warning",
    buttons: [[texts.now, () => submission.now()], [texts.change, () => {
      submission.stop();
      tell({ type: "assay:unsent" });
      say("");
    }]],
  }),
  refused: (problem, status) => {
    if (status === 410) drafts.forget();
    tell({ type: status === 410 ? "assay:over" : "assay:unsent" });
    say(problem, { kind: "error", buttons: status === 410 ? [[texts.list, work.groups]] : [close], focus: true });
  },
  received: (receipt) => {
    clearInterval(timer);
    drafts.forget();
    tell({ type: "assay:received" });
    const words = receipt.is_as_sent ? texts.received : texts.others;
    const text = fill(words, { time: timeOf(receipt.submitted_at), receipt: receipt.receipt });
    if (receipt.is_signed_in && receipt.is_as_sent) return find("#next-hit").submit();
    const next = receipt.is_signed_in ? [texts.look, work.submitted]
      : work.signIn ? [texts["sign-in"], work.signIn.replace(/next=.*/, `next=${encodeURIComponent(work.next)}`)]
      : close;
    say(receipt.is_signed_in ? text : `${text} ${texts["signed-out-sent"]}`, {
      kind: receipt.is_as_sent ? "success" : "warning", buttons: [next], focus: true });
  },
});

// Returning asks first where something was entered.
const back = find("form.return"), really = find("#really");
if (back) back.onsubmit = (event) => {
  if (!drafts?.hasEntered || standing.isReturned) return;
  event.preventDefault();
  really.showModal();
};
if (really) for (const button of really.querySelectorAll("button")) button.onclick = () => {
  really.close();
  if (button.value !== "yes") return;
  drafts.forget();
  back.append(Object.assign(document.createElement("input"), { type: "hidden", name: "confirmed", value: "yes" }));
  back.submit();
};

if (state.deadline) {
  const total = secondsUntil(state.due ?? state.deadline, clock);
  standing.warnAt = Math.min(300, Math.max(60, Math.floor(total / 5)));
  timer = everySecond(tick);
}
if (find("#more-time")) find("#more-time").onclick = () => addTime();
// The frame may have said hello before there was anybody to hear it.
tell({ type: "assay:around" });
