// Shortcut keys: one question is marked; digits answer it, letters choose among responses. All can be
// switched off, as single keys collide with speech input and some screen readers (WCAG 2.1.4).
const keysList = find("#keys"), keysOn = find("#keys-on");
const stops = [...entries, { node: submit }]
  .filter(({ question, key }) => question?.kind !== "selection" && key !== "none" && key !== "comment")
  .sort((one, other) => one.node.compareDocumentPosition(other.node) & Node.DOCUMENT_POSITION_FOLLOWING ? -1 : 1);
for (const { node, question } of fields) if (question.kind === "categories" || widgetOf(question.kind) === kinds.radio)
  all("label", node).slice(0, 10).forEach((label, index) => { if (!label.dataset.option) label.dataset.digit = (index + 1) % 10; });
const isShown = ({ node }) => !node.closest("[hidden]");
let current = null, typed = "", pressed = 0, isLed;

function point(stop) {
  if (stop === current) return;
  current?.node.removeAttribute("data-current");
  stop?.node.setAttribute("data-current", "");
  [current, typed] = [stop, ""];
}
// After an answer by one key, Enter from habit neither skips the next question nor submits.
function move(step, isAnswer) {
  const shown = stops.filter(isShown), [first] = missing(), to = shown[shown.indexOf(current) + step];
  // From nowhere, from an answered question and before Submit, what is missing comes first.
  if (first && step >= 0 && !current?.node.contains(first.input) && (!to?.question || !(step || to.value == null))) goTo(first.input);
  else if (to) {
    point(to);
    if (to.question || !isAnswer) goTo(to.input || control(to.node) || to.node);
  }
  isLed = isAnswer;
}

function answerByDigit(field, digit) {
  const kind = field.question.kind, inputs = all("input", field.node), chosen = inputs[(+digit || 10) - 1];
  if (kind === "line") widgetOf(kind).type(inputs[0], digit);
  else if (kind === "categories") chosen?.click();
  else if (widgetOf(kind) === kinds.radio && chosen) {
    chosen.click();
    move(1, true);
  }
}
function choose(letter, isWorst) {
  const key = Object.keys(letterOf).find((each) => letterOf[each] === letter);
  const tick = fields.find(({ question, candidate }) => question.kind === "selection" && candidate === key);
  const isAsked = (stop) => ["preference", "best_worst", "ranking"].includes(stop?.question?.kind) && isShown(stop);
  const field = isAsked(current) ? current : stops.find(isAsked);
  // Z enlarges a picture (pair.js).
  if (!key || letter === "Z" && find(".enlarge")) return;
  if (tick) return find("input", tick.node).click();
  if (!field) return;
  point(field);
  if (field.question.kind === "ranking") {
    const places = all("select", field.node), select = places.find((each) => each.dataset.key === key);
    select.value = select.value ? "" : 1 + Math.max(...places.map(({ value }) => +value));
    select.dispatchEvent(new Event("change", { bubbles: true }));
  } else {
    const groups = all("[role=radiogroup]", field.node);
    find(`[value="${key}"]`, groups[+isWorst] || field.node).click();
  }
  if (isGiven(field)) move(1, true);
}

const press = (event) => {
  const { key, target, shiftKey } = event, isCommand = event.ctrlKey || event.metaKey;
  if (event.defaultPrevented || event.altKey || event.repeat || event.isComposing) return;
  if (preview || sent || over || find("dialog[open]") || !find("#work").checkVisibility()) return;
  const action = isCommand ? key === "Enter" && (() => form.requestSubmit())
    : !keysOn.checked ? null
    : key === "Enter" ? !target.matches(shiftKey ? "textarea" : "a, button, summary, select, textarea")
      && (() => isLed && !shiftKey && current.value == null ? isLed = 0 : move(current?.node.contains(document.activeElement) ? shiftKey ? -1 : 1 : 0))
    // After Ctrl+Enter from a text, focus is on the missing answers: letters are not shortcuts there.
    : target.matches("input:not([type=radio], [type=checkbox], [type=range]), textarea") || problems.contains(target) ? null
    : key === "?" ? () => find("#keys-shown").click()
    : key === "0" && none ? () => none.click()
    // A list of places takes digits itself.
    : /^\d$/.test(key) ? !target.matches("select") && current?.question && isShown(current) && (() => answerByDigit(current, key))
    : /^[a-z]$/i.test(key) && (() => choose(key.toUpperCase(), shiftKey));
  if (!action) return;
  event.preventDefault();
  action();
};
addEventListener("keydown", press);
// Keys that the page around the frame forwards (work.js).
heard["assay:key"] = (data) => press({ ...data, target: document.body, preventDefault() {} });
addEventListener("focusin", ({ target }) => {
  const stop = stops.find(({ node }) => node.contains(target));
  if (stop) point(stop);
});
find("#keys-shown").onclick = () => {
  tell({ type: "assay:enlarge", isOn: true });
  keysList.showModal();
};
keysList.onclose = () => tell({ type: "assay:enlarge", isOn: false });
find("button", keysList).onclick = () => keysList.close();
keysOn.checked = recall("assay:keys") !== false;
const showKeys = () => root.toggle("keyless", !keysOn.checked);
keysOn.onchange = () => {
  keep("assay:keys", keysOn.checked);
  showKeys();
};
showKeys();
point(stops.find((stop) => isShown(stop) && stop.value === null));
