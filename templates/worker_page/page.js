const query = new URLSearchParams(location.search);
const NOBODY = "ASSIGNMENT_ID_NOT_AVAILABLE", assignment = query.get("assignmentId") || NOBODY;
const preview = assignment === NOBODY;
const rating = task.kind === "rating";
const form = find("#send"), submit = find("[type=submit]", form), problems = find("#problems"), main = find("main");
const reasonBox = find("#justification"), comment = find("#comment"), none = find("#none");
let send = submit.textContent, afterReview = null;
const perChoice = task.reason.rule === "choice", least = task.reason.least_length;
const tell = (message) => isHeard && parent.postMessage(message, "*");

// A frame without an origin has no storage, and says so by throwing.
const recall = (key) => attempt(() => JSON.parse(localStorage[key]));
const keep = (key, value) => attempt(() => { localStorage[key] = JSON.stringify(value); });

// FNV-1a
function hash(text) {
  let value = 2166136261;
  for (const char of text) value = Math.imul(value ^ char.codePointAt(0), 16777619);
  return value;
}

// Fisher–Yates on mulberry32: one assignment always sees one order.
function shuffled(list, seed) {
  for (let last = list.length - 1; last > 0; last--) {
    seed = (seed + 0x6d2b79f5) | 0;
    let mixed = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    const other = Math.floor(((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32 * (last + 1));
    [list[last], list[other]] = [list[other], list[last]];
  }
  return list;
}

// Order

// As they came; at random; or by a row of the table that the page was published with, which
// the slot picks that the marketplace gives the assignment, or else a hash.
function ordered(list) {
  const { policy, seed, rows } = task.order, drawn = hash((seed || "") + assignment) >>> 0;
  if (policy === "fixed") return list;
  if (!rows) return shuffled(list, drawn);
  return rows[(query.get("assaySlot") ?? drawn) % rows.length].map((index) => list[index]);
}
const cards = ordered(all("[data-candidate]"));
const order = cards.map((card) => card.dataset.candidate);
const letterOf = Object.fromEntries(order.map((key, index) => [key, index < 26 ? String.fromCharCode(65 + index) : index + 1]));
for (const card of cards) {
  card.parentNode.insertBefore(card, none?.closest(".card") || null);
  find(".badge", card).textContent = letterOf[card.dataset.candidate];
}
for (const option of order.flatMap((key) => all(`[data-option="${key}"]`))) {
  const list = option.parentNode;
  list.insertBefore(option, find(":scope > :not([data-option])", list));
}
for (const option of all("[data-option]"))
  find("[data-letter]", option).textContent = text("letter", { letter: letterOf[option.dataset.option] });

// Fields

const fields = all("[data-question]").map((node) => {
  const question = task.questions.find(({ name }) => name === node.dataset.question);
  const candidate = node.closest("[data-candidate]")?.dataset.candidate ?? null;
  const heading = find(".name span", node)?.textContent, letter = letterOf[candidate];
  const label = !heading ? "" : candidate === null ? heading : text("rating", { question: heading, letter });
  return {
    node, question, candidate, label, key: `${candidate ?? ""}|${question.name}`,
    value: question.kind === "selection" ? 0 : null, seconds: null, at: 0, pasted: false,
  };
});
for (const card of cards) if (card.dataset.name) card.ariaLabel = text("letter", { letter: letterOf[card.dataset.candidate] });
for (const field of fields) {
  for (const each of all("[data-name]", field.node).concat(field.node)) {
    const name = each.dataset.name;
    if (name) each.ariaLabel = name === "rating" ? field.label : text(name, { question: field.label });
  }
  for (const select of all("select", field.node)) select.ariaLabel = text("place", { letter: letterOf[select.dataset.key] });
}
const fieldOf = (name, candidate) => fields.find((field) => field.question.name === name && field.candidate === candidate);

// What is written beside the questions is kept as fields are.
const boxes = [];
function addBox(key, input, on = input) {
  const box = { key, input, value: null, seconds: null, at: 0, pasted: false, node: input.closest(".words") || input };
  box.show = () => {
    if (input.type === "checkbox") input.checked = !!box.value;
    else if (input.value !== (box.value || "")) input.value = box.value || "";
  };
  on.oninput = () => { give(box, input.type === "checkbox" ? input.checked : input.value); refresh(); };
  input.onpaste = input.ondrop = () => { box.pasted = true; };
  boxes.push(box);
  return box;
}
const reason = reasonBox && addBox("justification", reasonBox);
const remark = comment && addBox("comment", comment);
const noneBox = none && addBox("none", none);
const whys = perChoice ? cards.map((card) => {
  const row = find("#why").content.firstElementChild.cloneNode(true), key = card.dataset.candidate;
  const picture = find("img", card), thumb = find("img", row), input = find("textarea", row), label = find("label", row);
  if (picture) thumb.src = picture.src; else thumb.remove();
  const title = find(".text", card).textContent;
  label.textContent = text("why-chosen", { title: `${letterOf[key]}. ${title.slice(0, 120)}` });
  label.htmlFor = input.id = `y${letterOf[key]}`;
  find("#reasons").append(row);
  return Object.assign(addBox(`why|${key}`, input), { candidate: key });
}) : [];
const entries = [...fields, ...boxes];

const isChosen = (key) => fields.some(({ question, candidate, value }) =>
  question.kind === "selection" ? candidate === key && value === 1 : question.kind === "preference" && value === key);

// On which answer a question appears.
function appears({ question, candidate }) {
  if (!question.when) return true;
  const before = fieldOf(question.when.question, candidate) || fieldOf(question.when.question, null);
  if (!before || before.value === null || !appears(before)) return false;
  const { any_of: values = [], below, above } = question.when;
  return [before.value].flat().some((value) => values.includes(value) || value < below || value > above);
}

// Time

let ahead = 0; // of the server's clock
const now = () => Date.now() + ahead;
const draftKey = `assay:draft:${task.item}:${assignment}`, first = recall(draftKey) || {};
attempt(() => Object.keys(localStorage).forEach((key) => {
  if (key.startsWith("assay:draft:") && !(recall(key)?.saved > Date.now() - 7 * 864e5)) localStorage.removeItem(key);
}));
let before = first.seconds || 0, active = first.active || 0, tried = false, sent = false, over = false, ready = false;
const seconds = () => Math.round(before * 10 + performance.now() / 100) / 10;
let since = seconds();
// Counts the time since the last look, if the page could be seen.
function look(wasVisible) {
  if (wasVisible) active += Math.max(0, seconds() - since);
  since = seconds();
}
document.onvisibilitychange = () => look(document.hidden);

// What keeps an answer back beside questions, added by the parts of a page.
const checks = [];
let consent = null;

// Answers

function give(entry, value, at = seconds(), changed = now()) {
  Object.assign(entry, { value, seconds: at, at: changed });
  show(entry);
}
function show(entry) {
  if (!entry.question) return entry.show();
  if (entry.question.kind !== "selection") entry.node.toggleAttribute("data-given", isGiven(entry));
  widgetOf(entry.question.kind).show(entry);
}
// What is wrong with a value that is there.
const faultOf = (field) => field.value === null ? "" : widgetOf(field.question.kind).problem?.(field) || "";
const isGiven = (field) => field.value !== null && !faultOf(field);

for (const field of fields) widgetOf(field.question.kind).start(field, (value, ...when) => {
  if (none && value === 1 && field.question.kind === "selection" && none.checked) give(noneBox, false);
  give(field, value, ...when);
  refresh();
});
if (none) none.onchange = () => {
  if (none.checked) for (const field of fields) if (field.question.kind === "selection" && field.value) give(field, 0);
  refresh();
};

// What is missing

const control = (node) => all("input, textarea, select, button", node).find((each) => each.tabIndex >= 0 && !each.closest("[hidden]"));
function missing() {
  const left = checks.flatMap((check) => check());
  for (const field of fields) {
    const { node, question, value, label } = field;
    if (question.kind === "selection" || !appears(field)) continue;
    const problem = value === null ? question.required !== false && label : faultOf(field);
    if (problem) left.push({ node, input: control(node), text: problem });
  }
  if (none && !none.checked && !order.some((key) => isChosen(key)))
    left.push({ node: find(".choices"), input: control(find(".grid")), text: text("tick") });
  if (reason && lengthOf(reason.value) < least)
    left.push({ node: find("#reason"), input: reasonBox, text: text("short", { n: lengthOf(reason.value), least }) });
  for (const { node, input, value, candidate } of whys)
    if (isChosen(candidate) && lengthOf(value) < least)
      left.push({ node, input, text: `${letterOf[candidate]}: ${text("short", { n: lengthOf(value), least })}` });
  return left;
}

function goTo(node) {
  node.scrollIntoView({ block: "center" });
  node.focus({ preventScroll: true });
  const box = node.getBoundingClientRect();
  tell({ type: "assay:show", top: box.top + scrollY, height: box.height });
}

function link(anchor, { input }) {
  anchor.href = "#problems";
  anchor.onclick = (event) => {
    event.preventDefault();
    goTo(input);
  };
}

function progress() {
  const counted = fields.filter((field) => appears(field) && (rating || field.question.kind === "selection"));
  const n = counted.filter((field) => field.question.kind === "selection" ? field.value : isGiven(field)).length;
  return none?.checked ? text("none") : text("done", { n, total: counted.length });
}

function refresh() {
  for (const field of fields) if (field.question.when) field.node.hidden = !appears(field);
  for (const why of whys) {
    why.node.hidden = !isChosen(why.candidate);
    count(why.node, why.value);
  }
  if (reason) count(find("#reason"), reason.value);
  const left = missing(), missed = find("#first");
  find("#progress").textContent = progress();
  missed.hidden = !left.length || submit.disabled;
  if (left.length) link(missed, left[0]);
  if (tried) mark(left);
  if (ready) save();
}
function count(node, value) {
  const number = find(".count", node);
  if (number) number.textContent = lengthOf(value);
  node.toggleAttribute("data-given", !!number && lengthOf(value) >= least);
}

function list(title, rows) {
  problems.hidden = !rows.length;
  find("h2", problems).textContent = title;
  find("ul", problems).replaceChildren(...rows.map((each) => {
    const anchor = make("a", { textContent: each.text });
    link(anchor, each);
    return make("li", {}, anchor);
  }));
}
function mark(left) {
  list(text("missing", { n: left.length }), left);
  for (const { node } of left)
    if (node.matches(".field") && !find(".needed", node)) node.append(make("p", { className: "needed", textContent: text("needed") }));
  for (const note of all(".needed")) {
    const field = note.closest(".field, .words, .choices"), isLeft = left.some(({ node }) => node === field);
    note.hidden = !isLeft;
    // Ticks have no group with a role of its own to be marked: who comes to them hears the note.
    if (field.matches("fieldset")) attribute(field, "aria-describedby", isLeft && note.id);
    const marked = field.getAttribute("role") === "radiogroup" ? [field] : all("[type=range], [type=number], [type=text], textarea, select, [role=radiogroup]", field);
    for (const each of marked) each.ariaInvalid = isLeft;
  }
}

// Drafts: each entry with the moment of its last change, so that two can be put together.

let kept = "";
function draft() {
  const values = entries.filter(({ at }) => at).map(({ key, value, seconds, at, pasted }) => [key, value, seconds, at, pasted]);
  return { saved: Date.now(), seconds: seconds(), active, events: recorded(), entries: values };
}
function save() {
  look(!document.hidden);
  const whole = draft(), said = JSON.stringify(whole.entries);
  if (said === kept) return;
  kept = said;
  keep(draftKey, whole);
  if (whole.entries.length) tell({ type: "assay:draft", draft: JSON.stringify(whole), progress: progress() });
}
// Takes over what is newer there; says whether anything here is newer.
function merge(other) {
  let n = 0, isAhead = false;
  const theirs = new Map((other.entries || []).map(([key, ...rest]) => [key, rest]));
  for (const entry of entries) {
    const [value, at, changed, pasted] = theirs.get(entry.key) || [null, null, 0, false];
    if (changed > entry.at) {
      entry.pasted = !!pasted;
      give(entry, value, at, changed);
      n += 1;
    } else if (entry.at > changed) isAhead = true;
  }
  join(other.events);
  active = Math.max(active, other.active || 0);
  before = Math.max(before, (other.seconds || 0) - (ready ? performance.now() / 1000 : 0));
  since = seconds();
  return { n, isAhead };
}

// The answer

const written = (entry) => (entry?.value || "").trim();
function answer() {
  const rows = fields.filter(appears).map((field) => {
    const { candidate, question, value, seconds, pasted } = field;
    const given = value === null || faultOf(field) ? null : widgetOf(question.kind).answer?.(field) ?? value;
    return { candidate, question: question.name, value: given, seconds, ...(pasted && { pasted }) };
  });
  return {
    version: 1, item: task.item, order,
    judgments: rows.filter(({ value, question }) => value !== null || task.questions.find(({ name }) => name === question).required !== false),
    justification: written(reason), comment: written(remark),
    ...(perChoice && { reasons: whys.filter(({ candidate }) => isChosen(candidate)).map((why) =>
      ({ candidate: why.candidate, text: written(why), pasted: why.pasted })) }),
    ...(consent && { consent }),
    active_seconds: Math.round(active * 10) / 10,
    pasted: !!reason?.pasted, events: recorded(),
  };
}

function sending(isOn) {
  sent = isOn;
  submit.ariaDisabled = isOn;
  submit.textContent = isOn ? text("sending") : send;
  main.inert = isOn || over;
}

let isTaken = false;
function hand() {
  look(!document.hidden);
  const said = JSON.stringify(answer());
  sending(true);
  tell({ type: "assay:submit", fields: { answer: said } });
  // Nobody there to send it, against what the address said.
  setTimeout(() => { if (sent && !isTaken) post(said); }, 4000);
}
function post(said) {
  form.assignmentId.value = assignment;
  form.answer.value = said;
  form.submit();
}
form.onsubmit = (event) => {
  event.preventDefault();
  const left = missing();
  tried = true;
  if (sent || over || !form.getAttribute("action")) return;
  mark(left);
  if (left.length) return goTo(problems);
  save();
  if (opened) keep(opened, true);
  if (isHeard) return hand();
  sending(true);
  post(JSON.stringify(answer()));
};
// Back from a page that failed to load.
onpageshow = (event) => { if (event.persisted) sending(false); };

// What the page around the frame says.

const heard = {
  // What was said before the page around began to listen is said again.
  "assay:around": () => {
    tell({ type: "assay:hello" });
    tellHeight();
  },
  "assay:work": ({ drafts = [], now: theirs, isOver, answer: given }) => {
    if (theirs) ahead = Date.parse(theirs) - Date.now();
    if (given) return review(given);
    const merged = drafts.map((each) => merge(attempt(() => JSON.parse(each)) || {}));
    if (isOver) heard["assay:over"]();
    refresh();
    if (merged.some(({ isAhead }) => isAhead)) kept = "";
    save();
  },
  // Answers of an assignment whose time is over. Their times are not of this one.
  "assay:restore": ({ draft: theirs }) => {
    const { entries: earlier = [] } = attempt(() => JSON.parse(theirs)) || {};
    merge({ entries: earlier.map(([key, value, , ...rest]) => [key, value, seconds(), ...rest]) });
    refresh();
  },
  "assay:draft": ({ draft: theirs }) => {
    const { n, isAhead } = merge(attempt(() => JSON.parse(theirs)) || {});
    kept = isAhead ? "" : JSON.stringify(draft().entries);
    refresh();
    if (n) tell({ type: "assay:merged" });
  },
  "assay:sending": () => { isTaken = true; },
  "assay:unsent": () => { isTaken = false; sending(false); },
  "assay:received": () => { over = true; submit.textContent = text("sent"); main.inert = true; },
  "assay:over": () => {
    over = true;
    sending(false);
    submit.disabled = true;
    notice(text("over"));
  },
};
if (isHeard) addEventListener("message", (event) => event.source === parent && heard[event.data?.type]?.(event.data));

function notice(words) {
  find("#notice").hidden = false;
  find("#notice").textContent = words;
}

const lock = () => { for (const each of all("input, textarea, select, .line button", main)) each.disabled = true; };

// What was sent, to be read again.
function review(given) {
  const said = attempt(() => JSON.parse(given.answer)) || {};
  for (const row of said.judgments || []) {
    const field = fieldOf(row.question, row.candidate ?? null);
    const value = field?.question.kind === "ranking" && row.value
      ? Object.fromEntries(row.value.flatMap((group, index) => group.map((key) => [key, index + 1]))) : row.value;
    if (field && value !== undefined) give(field, value);
  }
  if (reason) give(reason, said.justification || "");
  if (remark) give(remark, said.comment || "");
  for (const why of whys) give(why, said.reasons?.find(({ candidate }) => candidate === why.candidate)?.text || "");
  if (noneBox) give(noneBox, !fields.some(({ question, value }) => question.kind === "selection" && value));
  ready = false;
  over = true;
  lock();
  submit.disabled = true;
  refresh();
  find("footer").hidden = true;
  notice(text("shown"));
  afterReview?.();
}

// A column taller than the window scrolls with the page until its end is in sight, and stays.
const column = find(".known") || find(".target"), pins = find(".pins");
const brief = find("#brief"), unfold = find("#unfold");
const tellHeight = () => tell({ type: "assay:height", height: document.body.getBoundingClientRect().height });
new ResizeObserver(() => {
  if (column) column.style.setProperty("--tall", `${column.offsetHeight}px`);
  if (pins) document.documentElement.style.setProperty("--pins", `${pins.offsetHeight}px`);
  if (brief) unfold.hidden = brief.scrollHeight <= brief.clientHeight;
  tellHeight();
}).observe(document.body);

// Instructions are open until work has been sent once.
const instructions = find("#instructions"), opened = instructions && `assay:instructions:${hash(instructions.textContent)}`;
if (instructions) {
  instructions.open = !recall(opened);
  unfold.onclick = () => { brief.id = ""; };
  instructions.ontoggle = () => keep(opened, !instructions.open);
}

const address = attempt(() => {
  const { protocol, origin, pathname } = new URL(query.get("turkSubmitTo"));
  return /^https?:$/.test(protocol) && `${origin}${pathname.replace(/\/+$/, "")}/mturk/externalSubmit`;
});
for (const entry of entries) show(entry);
if (address && !preview) {
  form.action = address;
  merge(first);
  ready = true;
  watch(fields);
  for (const each of all(":disabled")) each.disabled = false;
} else {
  // The page around a preview on Assay's marketplace says so.
  if (!preview || !isHeard) notice(text(preview ? "preview" : "outside"));
  lock();
}
find("#work").inert = false;
refresh();
