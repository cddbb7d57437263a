// Shuffles the candidates, keeps what the worker says about them, and sends it once.
// Comments that fill a line and indentation are left out of the page.
const find = (selector, root = document) => root.querySelector(selector);
const all = (selector, root = document) => [...root.querySelectorAll(selector)];
const attempt = (action) => { try { return action(); } catch { return null; } };
const task = JSON.parse(find("#task").textContent);
const query = new URLSearchParams(location.search);
const NOBODY = "ASSIGNMENT_ID_NOT_AVAILABLE", assignment = query.get("assignmentId") || NOBODY;
const preview = assignment === NOBODY;
const rating = task.kind === "rating", least = task.justification_min_length;
const form = find("#send"), submit = find("button", form), problems = find("#problems");
const texts = find("#texts").content, send = submit.textContent;
// A text of the page with its values, {like} this.
const text = (name, values) => find(`#${name}`, texts).textContent.replace(/\{(\w+)\}/g, (_, key) => values[key]);
const reason = find("#justification"), comment = find("#comment"), none = find("#none");

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

const cards = shuffled(all("[data-candidate]"), hash(assignment));
cards.forEach((card, index) => {
  card.parentNode.insertBefore(card, none?.closest(".card"));
  if (!rating) return;
  const letter = index < 26 ? String.fromCharCode(65 + index) : index + 1;
  find(".badge", card).textContent = letter;
  for (const each of all("[data-name]", card).concat(card)) {
    const question = find(".name", each.closest(".field") || card).firstChild.data.trim();
    each.ariaLabel = text(each.dataset.name, { question, letter });
  }
});
const fields = all("[data-question]").map((node) => ({
  node,
  candidate: node.closest("[data-candidate]").dataset.candidate,
  question: node.dataset.question,
  input: find("input", node),
  value: rating ? null : 0,
  seconds: null,
}));

const draftKey = `assay:draft:${task.item}:${assignment}`, draft = recall(draftKey) || {};
attempt(() => Object.keys(localStorage).forEach((key) => {
  if (key.startsWith("assay:draft:") && !(recall(key)?.saved > Date.now() - 7 * 864e5)) localStorage.removeItem(key);
}));
const seconds = () => Math.round((draft.seconds || 0) * 10 + performance.now() / 100) / 10;
let active = draft.active || 0, since = seconds(), pasted = !!draft.pasted, tried = false, sent = false;
// Counts the time since the last look, if the page could be seen.
function look(wasVisible) {
  if (wasVisible) active += seconds() - since;
  since = seconds();
}
document.onvisibilitychange = () => look(document.hidden);

function give(field, value, at = seconds()) {
  const { input, node } = field;
  Object.assign(field, { value, seconds: at });
  if (input.type === "checkbox") input.checked = value;
  else node.toggleAttribute("data-given", value !== null);
  if (input.type === "radio") find(`[value="${value}"]`, node).checked = true;
  if (input.type === "range") {
    const { min, max } = input, empty = value === null;
    input.value = value ?? input.defaultValue;
    input.style.setProperty("--share", empty ? -1 : (value - min) / (max - min));
    input.ariaValueText = text(empty ? "unanswered" : "scale", { value, min, max });
  }
}

// A range always has a value; until it is touched, ours has none and shows none.
function slide(field) {
  const { input, node } = field, low = +input.min, high = +input.max;
  const tenth = Math.max(1, Math.round((high - low) / 10));
  const set = (value) => {
    give(field, Math.min(high, Math.max(low, value)));
    refresh();
  };
  // The unseen thumb must not catch the press: the answer is where the worker pressed.
  const press = (event) => {
    if (field.value !== null || event.button || input.disabled) return;
    const box = input.getBoundingClientRect();
    set(low + Math.round((event.clientX - box.left - 12) / (box.width - 24) * (high - low)));
  };
  // A finger that comes down may be about to scroll: then all is as it was.
  let before = field;
  input.onpointerdown = (event) => {
    before = { ...field };
    if (event.pointerType === "mouse") press(event);
  };
  input.onpointerup = (event) => { if (event.pointerType !== "mouse") press(event); };
  input.onpointercancel = () => {
    give(field, before.value, before.seconds);
    refresh();
  };
  input.oninput = () => set(input.valueAsNumber);
  input.onkeydown = (event) => {
    const now = input.valueAsNumber;
    const to = {
      ArrowLeft: now - 1, ArrowDown: now - 1, ArrowRight: now + 1, ArrowUp: now + 1,
      PageDown: now - tenth, PageUp: now + tenth, Home: low, End: high, " ": now, Enter: now,
    }[event.key];
    if (to === undefined || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    set(to);
  };
  for (const button of all("button", node)) button.onclick = () => set(input.valueAsNumber + +button.value);
}

for (const field of fields) {
  if (field.input.type === "range") slide(field);
  else field.node.onchange = ({ target }) => {
    if (none && target.checked) none.checked = false;
    give(field, rating ? +target.value : +target.checked);
    refresh();
  };
}
if (none) none.onchange = () => {
  if (none.checked) for (const field of fields) if (field.value) give(field, 0);
  refresh();
};

const reasonLength = () => [...reason.value.trim()].length;

function missing() {
  const left = fields.filter((field) => field.value === null)
    .map(({ node, input }) => ({ node, input, text: node.ariaLabel || input.ariaLabel }));
  if (none && !none.checked && !fields.some(({ value }) => value))
    left.push({ node: find(".choices"), input: fields[0].input, text: text("tick") });
  if (reason && reasonLength() < least)
    left.push({ node: find("#reason"), input: reason, text: text("short", { n: reasonLength() }) });
  return left;
}

function goTo(node) {
  node.scrollIntoView({ block: "center" });
  node.focus({ preventScroll: true });
}

function link(anchor, { input }) {
  anchor.href = "#problems";
  anchor.onclick = (event) => {
    event.preventDefault();
    goTo(input);
  };
}

function refresh() {
  const left = missing(), first = find("#first");
  const n = fields.filter(({ value }) => rating ? value !== null : value).length;
  find("#progress").textContent = text(none?.checked ? "none" : "done", { n, total: fields.length });
  first.hidden = !left.length || submit.disabled;
  if (left.length) link(first, left[0]);
  if (reason && least) {
    find("#count").textContent = reasonLength();
    find("#reason").toggleAttribute("data-given", reasonLength() >= least);
  }
  if (tried) mark(left);
  if (!submit.disabled) save();
}

function mark(left) {
  problems.hidden = !left.length;
  find("h2", problems).textContent = text("missing", { n: left.length });
  find("ul", problems).replaceChildren(...left.map((each) => {
    const line = document.createElement("li"), anchor = line.appendChild(document.createElement("a"));
    anchor.textContent = each.text;
    link(anchor, each);
    return line;
  }));
  for (const note of all(".needed")) {
    const field = note.parentNode, isLeft = left.some(({ node }) => node === field);
    note.hidden = !isLeft;
    for (const each of field.role ? [field] : all("[type=range], textarea", field)) each.ariaInvalid = isLeft;
  }
}

function save() {
  look(!document.hidden);
  keep(draftKey, {
    saved: Date.now(), seconds: seconds(), active, pasted, none: none?.checked, reason: reason?.value, comment: comment.value,
    values: fields.map((field) => [field.value, field.seconds]),
  });
}

function restore() {
  // One assignment always has one order, so an index is enough.
  draft.values?.forEach(([value, at], index) => at !== null && give(fields[index], value, at));
  if (none) none.checked = draft.none;
  if (reason) reason.value = draft.reason || "";
  comment.value = draft.comment || "";
}

const answer = () => ({
  version: 1,
  item: task.item,
  order: cards.map((card) => card.dataset.candidate),
  judgments: fields.map(({ candidate, question, value, seconds }) => ({ candidate, question, value, seconds })),
  justification: reason ? reason.value.trim() : "",
  comment: comment.value.trim(),
  active_seconds: Math.round(active * 10) / 10,
  pasted,
});

function sending(now) {
  sent = now;
  submit.ariaDisabled = now;
  submit.textContent = now ? text("sending") : send;
}

form.onsubmit = (event) => {
  const left = missing();
  tried = true;
  if (sent || left.length) event.preventDefault();
  if (sent) return;
  mark(left);
  if (left.length) return goTo(problems);
  save();
  form.assignmentId.value = assignment;
  form.answer.value = JSON.stringify(answer());
  sending(true);
};
// Back from a page that failed to load.
onpageshow = (event) => { if (event.persisted) sending(false); };

for (const box of all("textarea")) box.oninput = refresh;
if (reason) reason.onpaste = reason.ondrop = () => { pasted = true; };

const zoom = find("#zoom");
for (const button of all(".enlarge")) {
  const card = button.parentNode, picture = find("img", card);
  button.onclick = () => {
    find("img", zoom).src = picture.src;
    find("img", zoom).alt = find("p", zoom).textContent = picture.alt;
    zoom.showModal();
  };
  card.onkeydown = (event) => { if (/^z$/i.test(event.key) && !event.ctrlKey) button.click(); };
}
if (zoom) find("button", zoom).onclick = () => zoom.close();

const context = find("#context"), whole = find("#whole");
if (context) {
  const box = find(".scroll", context), unfold = whole.textContent;
  whole.onclick = () => { whole.textContent = context.classList.toggle("whole") ? text("folded") : unfold; };
  onresize = () => { whole.hidden = !context.matches(".whole") && box.scrollHeight <= box.clientHeight + 1; };
  onresize();
}

const instructions = find("#instructions");
if (instructions) {
  const key = `assay:instructions:${hash(instructions.textContent)}`;
  instructions.open = !recall(key);
  form.addEventListener("submit", () => sent && keep(key, true));
  instructions.ontoggle = () => keep(key, !instructions.open);
}

const address = attempt(() => {
  const { protocol, origin, pathname } = new URL(query.get("turkSubmitTo"));
  return /^https?:$/.test(protocol) && `${origin}${pathname.replace(/\/+$/, "")}/mturk/externalSubmit`;
});
if (address && !preview) {
  form.action = address;
  restore();
  for (const each of all(":disabled")) each.disabled = false;
} else {
  const notice = find("#notice");
  notice.hidden = false;
  notice.textContent = text(preview ? "preview" : "outside");
  for (const each of all(".enlarge")) each.disabled = false;
}
refresh();
