// The Design page: the preview follows the draft, one card is open at a time, errors are shown at
// their fields, and a button changes the form without loading the page. Without this script the
// same buttons send the form.

const find = (selector, root = document) => root.querySelector(selector);
const all = (selector, root = document) => [...root.querySelectorAll(selector)];
const form = () => find("#protocol-form[method=post]");

function press(group, pressed) {
  for (const button of group) button.setAttribute("aria-pressed", button === pressed);
}

// Cards: one is open, and the preview shows its question.

function showCard(card, isOpen) {
  for (const other of all(".q")) {
    const shown = other === card && isOpen;
    other.classList.toggle("open", shown);
    find(".q-body", other).hidden = !shown;
    const edit = find("[data-edit]", other);
    edit.setAttribute("aria-expanded", shown);
    if (edit.name) edit.value = shown ? "close" : edit.dataset.edit;
  }
  find("[name=open]").value = (isOpen && card.dataset.index) || "";
}

function openCard(card) {
  showCard(card, true);
  follow();
}

function reveal(field) {
  for (let fold = field.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
  const card = field.closest(".q");
  if (card && !card.classList.contains("open")) openCard(card);
  if (field.closest("#preview, .rail") && !field.checkVisibility()) find("#preview").showPopover();
}

// By its help, if it has one, and by the fault.
function describe(field, fault) {
  const help = document.getElementById(`${field.id}-help`)?.id ?? "";
  const ids = `${help} ${fault}`.trim();
  if (ids) field.setAttribute("aria-describedby", ids);
  else field.removeAttribute("aria-describedby");
}

// Each error once more at its field. A folded section with one opens.
function markFaults() {
  for (const note of all(".fault", find("#design"))) note.remove();
  for (const field of all("[aria-invalid]", find("#design"))) {
    field.removeAttribute("aria-invalid");
    describe(field, "");
  }
  for (const link of all("#protocol-saved [data-field]")) {
    const field = document.getElementById(link.dataset.field);
    if (!field?.matches("input, select, textarea")) continue;
    field.setAttribute("aria-invalid", "true");
    const fold = field.closest(".q") ? null : field.closest(".fold");
    if (fold) reveal(field);
    const id = `fault-${field.id}`;
    if (document.getElementById(id)) continue;
    const note = document.createElement("p");
    note.className = "fault bad small";
    note.id = id;
    note.textContent = link.textContent;
    (field.closest(".points, .stepper") ?? field).after(note);
    describe(field, id);
  }
}

// The frame has no origin of its own, so it is loaded again.
function follow() {
  const frame = find("#preview-frame");
  if (!frame) return;
  const address = new URL(frame.src);
  const version = find("#protocol-saved").dataset.version, question = find("[name=open]").value;
  if (version) address.searchParams.set("version", version);
  if (question) address.searchParams.set("question", question);
  else address.searchParams.delete("question");
  address.searchParams.set("at", Date.now());
  frame.src = address;
}

document.addEventListener("click", (event) => {
  const edit = event.target.closest("[data-edit]");
  if (edit) {
    event.preventDefault();
    const card = edit.closest(".q");
    if (card.classList.contains("open")) showCard(card, false);
    else openCard(card);
    return;
  }
  const more = event.target.closest(".more-acts");
  if (more) more.setAttribute("aria-expanded", more.parentElement.classList.toggle("all"));
  const width = event.target.closest("[data-width]");
  if (width) {
    press(all("[data-width]"), width);
    find(".screen").className = `screen ${width.dataset.width}`;
  }
  const fault = event.target.closest("a[data-field]");
  const field = fault && document.getElementById(fault.dataset.field);
  if (field) {
    event.preventDefault();
    fault.closest(".errors")?.removeAttribute("open");
    reveal(field);
    field.focus();
  }
  const line = event.target.closest("[data-line]");
  if (line) {
    event.preventDefault();
    const box = find("#yaml"), lines = box.value.split("\n"), n = +line.dataset.line - 1;
    const start = lines.slice(0, n).join("\n").length + (n ? 1 : 0);
    box.focus();
    box.setSelectionRange(start, start + (lines[n] ?? "").length);
    box.scrollTop = (n - 4) * parseFloat(getComputedStyle(box).lineHeight);
  }
});

// What is typed is saved a moment later. Before that, undoing is leaving it out.
const PAUSE_MS = 700;
let isTyped = false, saving, computing;
document.addEventListener("input", ({ target }) => {
  if (!target.name || target.form !== form() || target.matches("[data-reload]")) return;
  isTyped = true;
  clearTimeout(saving);
  saving = setTimeout(() => send({}), PAUSE_MS);
  clearTimeout(computing);
  computing = setTimeout(() => htmx.trigger("#size", "refresh"), PAUSE_MS / 2);
});

// A button of the form changes it: the answer is the form again. Folds that are open stay open.
let open = [], width = "phone";
document.addEventListener("submit", (event) => {
  if (event.target !== form()) return;
  event.preventDefault();
  send(event.submitter?.name ? { [event.submitter.name]: event.submitter.value } : {});
});

// One request after another: each is about the draft that the one before it left.
let requests = Promise.resolve();
function send(values) {
  clearTimeout(saving);
  if (values.action === "undo" && isTyped) values.action = "reset";
  isTyped = false;
  requests = requests.then(() => request(values)).catch(() => {});
}

function request(values) {
  const source = form();
  open = all("#design details[open]").map((fold) => fold.id);
  width = find("[data-width][aria-pressed=true]")?.dataset.width ?? width;
  // Named in any case: htmx would send the button that was pressed last.
  const named = { action: "", ...values }, target = named.action ? "#design" : "#protocol-saved";
  return htmx.ajax("POST", source.getAttribute("action"), { source, target, swap: "outerHTML", values: named })
    .then(() => named.action && htmx.trigger("#size", "refresh"));
}

// Another kind, scope or task has other fields: the answer brings them.
document.addEventListener("change", (event) => {
  if (event.target.matches("[data-reload]") && form()) send({ action: event.target.dataset.reload });
});

document.addEventListener("htmx:beforeRequest", ({ detail }) => {
  if (detail.elt !== form()) return;
  find("#protocol-saved [role=status]")?.setAttribute("hidden", "");
  find("#protocol-saved .unsaved")?.setAttribute("hidden", "");
  find("#protocol-saved .saving")?.removeAttribute("hidden");
});
for (const failed of ["htmx:sendError", "htmx:responseError", "htmx:timeout"]) {
  document.addEventListener(failed, ({ detail }) => {
    if (detail.elt !== form()) return;
    find("#protocol-saved .saving")?.setAttribute("hidden", "");
    find("#protocol-saved .unsaved")?.removeAttribute("hidden");
  });
}

document.addEventListener("htmx:afterSwap", ({ detail }) => {
  const design = find("#design");
  if (detail.target.id === "design" && design) {
    for (const id of open) document.getElementById(id)?.setAttribute("open", "");
    find(`[data-width=${width}]`)?.click();
    document.getElementById(design.dataset.focus)?.focus();
    markFaults();
  } else if (detail.target.id === "protocol-saved" && design) {
    markFaults();
    follow();
  }
});

document.addEventListener("keydown", (event) => {
  const isText = event.target.matches?.("input:not([type=radio], [type=checkbox]), textarea, select");
  if (event.key === "Enter" && event.target.matches?.("#design input")) event.preventDefault();
  if (event.key.toLowerCase() === "z" && (event.ctrlKey || event.metaKey) && !event.shiftKey && !isText) find("#undo")?.click();
  const step = { ArrowUp: "up", ArrowDown: "down" }[event.key];
  const card = step && event.altKey && event.target.closest?.(".q");
  const button = card && find(`[value^="${step}:"]`, card);
  if (!button) return;
  event.preventDefault();
  button.click();
});

if (find("#design")) markFaults();

// A new question has a name such as rating_2. As long as nobody answered, it is named after its
// wording instead, once that is written.
const GIVEN = /^(rating|choice|attention|text|slider)(_\d+)?$/;
const FILLERS = /^(an?|the|is|are|was|were|do|does|did|how|what|which|who|why|to|of|in|for|you|your|this|that|it|its|more|responses?)$/;

document.addEventListener("change", ({ target }) => {
  if (!target.name?.endsWith("wording") || !target.closest(".q")) return;
  const own = target.name.slice(0, -"wording".length);
  const name = find(`[name="${own}name"]`);
  if (!find(`[name="${own}was"][data-derives]`) || !GIVEN.test(name.value)) return;
  const words = target.value.toLowerCase().match(/[\p{L}\p{M}\p{N}]+/gu) ?? [];
  const derived = words.filter((word) => !FILLERS.test(word)).slice(0, 2).join("_").slice(0, 40);
  if (!derived || all(".q [name$=name]").some((other) => other.value === derived)) return;
  name.value = derived;
  name.dispatchEvent(new Event("input", { bubbles: true }));
});
