// The protocol's page: the preview follows the draft, faults stand at their fields, and Alt with
// an arrow moves a question. Without this script the form's buttons do the same.

const find = (selector, root = document) => root.querySelector(selector);
const all = (selector, root = document) => [...root.querySelectorAll(selector)];
const form = find("#protocol-form"), frame = find("#preview-frame"), page = find("#protocol");

function open(field) {
  for (let fold = field.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
}

// By its help, if it has one, and by the fault.
function describe(field, fault) {
  const help = document.getElementById(`${field.id}-help`)?.id ?? "";
  const ids = `${help} ${fault}`.trim();
  if (ids) field.setAttribute("aria-describedby", ids);
  else field.removeAttribute("aria-describedby");
}

// Each fault once more at its field, where the field is one that is shown.
function markFaults() {
  for (const note of all(".fault", form)) note.remove();
  for (const field of all("[aria-invalid]", form)) {
    field.removeAttribute("aria-invalid");
    describe(field, "");
  }
  for (const link of all("#protocol-saved [data-field]")) {
    const field = document.getElementById(link.dataset.field);
    if (!field?.matches("input, select, textarea")) continue;
    const note = document.createElement("p");
    note.className = "fault bad small";
    note.id = `fault-${field.id}`;
    note.textContent = link.textContent;
    field.setAttribute("aria-invalid", "true");
    if (document.getElementById(note.id)) continue;
    field.after(note);
    describe(field, note.id);
  }
}

document.addEventListener("click", (event) => {
  const fault = event.target.closest("[data-field]");
  const field = fault && document.getElementById(fault.dataset.field);
  if (field) {
    event.preventDefault();
    open(field);
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

// The frame has no origin of its own, so it is loaded anew, at the place where it was.
function follow() {
  markFaults();
  if (!frame) return;
  const address = new URL(frame.src);
  const version = find("#protocol-saved").dataset.version;
  if (version) address.searchParams.set("version", version);
  address.searchParams.set("at", Date.now());
  frame.src = address;
}

document.addEventListener("htmx:afterSwap", ({ detail }) => {
  if (detail.target.id === "protocol-saved" || detail.elt.id === "protocol-saved") follow();
});

// Another kind has other fields: the page brings them.
document.addEventListener("change", (event) => {
  if (!event.target.matches("[data-reload]")) return;
  event.stopPropagation();
  const action = document.createElement("input");
  action.type = "hidden";
  action.name = "action";
  action.value = event.target.dataset.reload || `show:${event.target.closest(".question").id.split("-")[1]}`;
  form.append(action);
  form.submit();
}, true);

document.addEventListener("keydown", (event) => {
  const step = { ArrowUp: "up", ArrowDown: "down" }[event.key];
  const question = step && event.altKey && event.target.closest?.(".question");
  const button = question && find(`[value^="${step}:"]`, question);
  if (!button) return;
  event.preventDefault();
  button.click();
});

function press(group, pressed) {
  for (const button of group) button.setAttribute("aria-pressed", button === pressed);
}
for (const button of all("[data-width]")) button.onclick = () => {
  press(all("[data-width]"), button);
  find(".screen").className = `screen ${button.dataset.width}`;
  page.classList.toggle("wide", button.dataset.width === "desktop");
};
for (const button of all("[data-show]")) button.onclick = () => {
  press(all("[data-show]"), button);
  page.classList.toggle("previewing", button.dataset.show === "preview");
};
if (form) markFaults();
