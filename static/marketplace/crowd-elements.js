// The common elements of <crowd-form>, written anew for this marketplace: a page that
// loads crowd-html-elements.js on Mechanical Turk loads this here.
//
// A form's result is one answer, taskAnswers, a JSON array with one object in it; with
// answer-format="flatten-objects" it is one answer per leaf, named by its path.
(function () {
  "use strict";
  if (customElements.get("crowd-form")) return; // loaded twice
  const query = new URLSearchParams(window.location.search);
  const assignmentId = query.get("assignmentId") || "";
  const isPreview = !assignmentId || assignmentId === "ASSIGNMENT_ID_NOT_AVAILABLE";
  const here = new URL(document.currentScript.src).origin;
  const submitTo = (query.get("turkSubmitTo") || here).replace(/\/$/, "");

  const STYLE = `
    :host { display: block; margin: 0 0 16px; font: inherit; } :host([hidden]) { display: none; }
    *, *::before { box-sizing: border-box; }
    label, legend { display: block; font-weight: 600; margin-bottom: 4px; padding: 0; }
    fieldset { border: 0; margin: 0; padding: 0; min-width: 0; }
    .choice { display: flex; gap: 8px; align-items: center; min-height: 32px; font-weight: 400; }
    .choice input { width: 20px; height: 20px; margin: 0; flex: none; accent-color: #0b5f68; }
    input:not([type=checkbox], [type=radio], [type=range]), textarea { width: 100%; min-height: 40px;
      padding: 8px 12px; font: inherit; border-radius: 6px; border: 1px solid #526067; }
    input[type=range] { width: 100%; accent-color: #0b5f68; }
    button { min-height: 40px; padding: 8px 16px; font: inherit; border-radius: 6px; cursor: pointer;
      border: 1px solid #526067; background: #f5f7f7; color: #142024; }
    button.primary { background: #0b5f68; border-color: #0b5f68; color: #fff; }
    button:disabled { opacity: .6; cursor: not-allowed; } img { max-width: 100%; }
    :focus-visible { outline: 3px solid #0b5f68; outline-offset: 2px; }
    .error { color: #ad2218; margin: 4px 0 0; } .error:empty { display: none; }
    .muted { color: #526067; font-size: 13px; } summary { cursor: pointer; font-weight: 600; }
    details { border: 1px solid #dfe5e6; border-radius: 6px; padding: 8px 12px; }
    ::slotted(*) { display: block; margin-bottom: 8px; }
    ::slotted(positive-example)::before { content: "Good example: "; font-weight: 600; }
    ::slotted(negative-example)::before { content: "Bad example: "; font-weight: 600; }
  `;

  function make(name, properties = {}, ...children) {
    const element = Object.assign(document.createElement(name), properties);
    element.append(...children);
    return element;
  }

  // Attributes are often written with single quotes inside.
  function parseList(text) {
    try { return JSON.parse(text); } catch { return JSON.parse(text.replaceAll("'", '"')); }
  }

  function whenParsed(action) {
    if (document.readyState !== "loading") queueMicrotask(action);
    else document.addEventListener("DOMContentLoaded", action, { once: true });
  }

  // Every element builds its inside once, when all its children are there.
  class CrowdElement extends HTMLElement {
    connectedCallback() {
      if (this.shadowRoot) return;
      this.attachShadow({ mode: "open", delegatesFocus: this.constructor.delegatesFocus ?? true });
      this.shadowRoot.append(make("style", { textContent: STYLE }));
      this.build(this.shadowRoot);
    }
    get name() { return this.getAttribute("name") || ""; }
    // A paragraph below a field, empty until there is something to say.
    makeProblem() {
      this.problem = make("p", { className: "error", id: "problem" });
      this.problem.setAttribute("role", "alert");
      return this.problem;
    }
    tellOfChange() {
      this.problem.textContent = "";
      this.dispatchEvent(new Event("change", { bubbles: true }));
    }
  }
  for (const name of ["required", "disabled"]) {
    Object.defineProperty(CrowdElement.prototype, name, {
      get() { return this.hasAttribute(name); },
      set(value) { this.toggleAttribute(name, Boolean(value)); },
    });
  }

  // One native control with its label; its answer is its value.
  class CrowdField extends CrowdElement {
    static observedAttributes = ["value", "disabled", "required", "label"];
    build(root) {
      this.control = this.makeControl();
      this.control.id = "control";
      this.caption = make("label", { htmlFor: "control" });
      this.makeProblem();
      this.control.setAttribute("aria-describedby", "problem");
      root.append(...this.arrange());
      this.control.addEventListener("input", () => { this.problem.textContent = ""; });
      this.control.addEventListener("change", () => this.tellOfChange());
      if (this.hasAttribute("value")) this.control.value = this.getAttribute("value");
      this.attributeChangedCallback();
    }
    arrange() { return [this.caption, this.control, this.problem]; }
    attributeChangedCallback(attribute, before, after) {
      if (!this.control) return;
      if (attribute === "value") this.control.value = after ?? "";
      const label = this.getAttribute("label") || this.getAttribute("placeholder") || this.name;
      this.caption.textContent = label + (this.required ? " (required)" : "");
      this.control.disabled = this.disabled;
      this.control.required = this.required;
    }
    get value() { return this.control ? this.control.value : this.getAttribute("value") ?? ""; }
    set value(value) { this.control ? (this.control.value = value) : this.setAttribute("value", value); }
    collect(answers) { if (this.name) answers[this.name] = this.value; }
    complain() {
      this.problem.textContent = this.control.validationMessage;
      return this.control.validity.valid;
    }
  }

  class CrowdInput extends CrowdField {
    makeControl() {
      const control = make("input", { type: this.getAttribute("type") || "text" });
      const names = { placeholder: "placeholder", "max-length": "maxlength", "min-length": "minlength",
        "allowed-pattern": "pattern", pattern: "pattern", min: "min", max: "max", step: "step" };
      for (const [ours, native] of Object.entries(names)) {
        if (this.hasAttribute(ours)) control.setAttribute(native, this.getAttribute(ours));
      }
      return control;
    }
    complain() {
      const isValid = super.complain();
      if (!isValid) this.problem.textContent = this.getAttribute("error-message") || this.problem.textContent;
      return isValid;
    }
  }

  class CrowdTextArea extends CrowdField {
    makeControl() {
      const control = make("textarea", { rows: Number(this.getAttribute("rows")) || 4 });
      if (this.hasAttribute("placeholder")) control.placeholder = this.getAttribute("placeholder");
      if (this.hasAttribute("max-length")) control.maxLength = Number(this.getAttribute("max-length"));
      return control;
    }
  }

  class CrowdSlider extends CrowdField {
    makeControl() {
      const control = make("input", { type: "range" });
      const given = ["min", "max", "step"].filter((name) => this.hasAttribute(name));
      for (const name of given) control.setAttribute(name, this.getAttribute(name));
      if (!this.hasAttribute("value")) control.value = control.min || "0";
      this.shown = make("output", { className: "muted" });
      control.addEventListener("input", () => this.show());
      queueMicrotask(() => this.show());
      return control;
    }
    arrange() { return [this.caption, this.control, this.shown, this.problem]; }
    show() { this.shown.textContent = this.control.value; }
    get value() { return this.control ? Number(this.control.value) : Number(this.getAttribute("value")); }
    set value(value) { super.value = value; if (this.shown) this.show(); }
  }

  class CrowdCheckbox extends CrowdElement {
    build(root) {
      this.control = make("input", { type: "checkbox", checked: this.hasAttribute("checked"), disabled: this.disabled });
      this.control.addEventListener("change", () => this.tellOfChange());
      root.append(make("label", { className: "choice" }, this.control, make("slot")), this.makeProblem());
    }
    get checked() { return this.control ? this.control.checked : this.hasAttribute("checked"); }
    set checked(value) { this.control ? (this.control.checked = value) : this.toggleAttribute("checked", Boolean(value)); }
    get value() { return this.getAttribute("value") || "on"; }
    collect(answers) { if (this.name) (answers[this.name] ??= {})[this.value] = this.checked; }
    complain() {
      const isValid = !this.required || this.checked;
      this.problem.textContent = isValid ? "" : "Please tick this box.";
      return isValid;
    }
  }

  // Radio buttons live in shadow trees of their own, where the browser can't group them:
  // the element itself is the radio, and the arrow keys are ours.
  class CrowdRadioButton extends CrowdElement {
    static delegatesFocus = false;
    build(root) {
      this.isChosen = this.hasAttribute("checked");
      this.setAttribute("role", "radio");
      const mark = make("span", { className: "mark" });
      root.append(
        make("style", { textContent: `
          :host { margin: 0; cursor: pointer; border-radius: 6px; }
          :host(:focus-visible) { outline: 3px solid #0b5f68; outline-offset: 2px; }
          .mark { width: 20px; height: 20px; border: 2px solid #526067; border-radius: 50%; flex: none; }
          :host([aria-checked=true]) .mark { border: 6px solid #0b5f68; }
          ::slotted(*) { display: inline; margin: 0; }` }),
        make("span", { className: "choice" }, mark, make("slot")),
      );
      this.addEventListener("click", () => this.choose());
      this.addEventListener("keydown", (event) => this.move(event));
      this.show();
    }
    get fellows() {
      const group = this.closest("crowd-radio-group");
      if (group) return [...group.querySelectorAll("crowd-radio-button")];
      const form = this.closest("crowd-form") || document;
      return [...form.querySelectorAll("crowd-radio-button")].filter(
        (other) => other.name === this.name && !other.closest("crowd-radio-group"));
    }
    choose() {
      if (this.disabled) return;
      for (const other of this.fellows) { other.isChosen = other === this; other.show?.(); }
      this.dispatchEvent(new Event("change", { bubbles: true }));
    }
    move(event) {
      const steps = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 };
      if (event.key === " ") { event.preventDefault(); this.choose(); }
      if (!(event.key in steps)) return;
      event.preventDefault();
      const fellows = this.fellows;
      const next = fellows[(fellows.indexOf(this) + steps[event.key] + fellows.length) % fellows.length];
      next.choose();
      next.focus();
    }
    show() {
      const fellows = this.fellows;
      const reached = fellows.find((other) => other.isChosen) || fellows[0];
      this.setAttribute("aria-checked", String(Boolean(this.isChosen)));
      this.tabIndex = this === reached ? 0 : -1;
    }
    get checked() { return Boolean(this.isChosen); }
    set checked(value) { if (value) this.choose(); else { this.isChosen = false; this.show(); } }
    get value() { return this.getAttribute("value") || "on"; }
    collect(answers) { if (this.name) (answers[this.name] ??= {})[this.value] = this.checked; }
    complain() { return !this.required || this.fellows.some((other) => other.checked); }
  }

  class CrowdRadioGroup extends CrowdElement {
    static delegatesFocus = false;
    build(root) {
      this.setAttribute("role", "radiogroup");
      if (!this.hasAttribute("aria-label") && !this.hasAttribute("aria-labelledby")) {
        this.setAttribute("aria-label", this.getAttribute("label") || this.name || "Choose one");
      }
      root.append(make("slot"), this.makeProblem());
    }
    get value() { return this.chosen?.value; }
    get chosen() { return [...this.querySelectorAll("crowd-radio-button")].find((button) => button.checked); }
    complain() {
      const isValid = !this.required || Boolean(this.chosen);
      this.problem.textContent = isValid ? "" : "Please choose one.";
      return isValid;
    }
    focus() { this.querySelector("crowd-radio-button")?.focus(); }
  }

  // A header, something to look at, and categories to choose from.
  class CrowdClassifier extends CrowdElement {
    build(root) {
      const categories = parseList(this.getAttribute("categories") || "[]");
      const type = this.isMultiple ? "checkbox" : "radio";
      this.choices = categories.map((value) => make("input", { type, name: "category", value }));
      const labels = this.choices.map((choice) => make("label", { className: "choice" }, choice, choice.value));
      const header = this.getAttribute("header") || "Choose a category";
      const instructions = make("details", {}, make("summary", { textContent: "Instructions" }), make("slot", { name: "instructions" }));
      if (this.hasAttribute("src")) root.append(make("img", { src: this.getAttribute("src"), alt: "What to classify" }));
      root.append(make("slot"), make("fieldset", {}, make("legend", { textContent: header }), ...labels), this.makeProblem(), instructions);
      root.addEventListener("change", () => this.tellOfChange());
      whenParsed(() => {
        const found = this.querySelectorAll("full-instructions, short-instructions");
        for (const child of found) child.slot = "instructions";
        instructions.hidden = found.length === 0;
      });
    }
    get labels() { return this.choices.filter((choice) => choice.checked).map((choice) => choice.value); }
    get value() { return this.isMultiple ? { labels: this.labels } : { label: this.labels[0] }; }
    collect(answers) { if (this.name) answers[this.name] = this.value; }
    complain() {
      const isValid = this.isMultiple || this.labels.length > 0;
      this.problem.textContent = isValid ? "" : "Please choose a category.";
      return isValid;
    }
  }
  class CrowdMultiClassifier extends CrowdClassifier { get isMultiple() { return true; } }

  class CrowdInstructions extends CrowdElement {
    build(root) {
      const summary = make("summary", { textContent: this.getAttribute("link-text") || "Instructions" });
      root.append(make("details", { open: true }, summary, make("slot")));
    }
  }

  class CrowdButton extends CrowdElement {
    build(root) {
      this.control = make("button", { type: "button", disabled: this.disabled }, make("slot"));
      this.control.className = this.getAttribute("variant") || "";
      root.append(this.control);
      this.addEventListener("click", () => {
        const action = this.getAttribute("form-action");
        if (action === "submit" && !this.disabled) this.closest("crowd-form")?.submit();
        if (this.hasAttribute("href")) window.open(this.getAttribute("href"), "_blank", "noopener");
      });
    }
    static observedAttributes = ["disabled"];
    attributeChangedCallback() { if (this.control) this.control.disabled = this.disabled; }
  }

  const NATIVE = "input[name], select[name], textarea[name]";
  const UNANSWERABLE = new Set(["submit", "button", "reset", "image", "file"]);
  const SUBMITTERS = 'crowd-button[form-action="submit"], button[type=submit], input[type=submit]';

  class CrowdForm extends HTMLElement {
    connectedCallback() {
      if (this.isBuilt) return;
      this.isBuilt = true;
      this.style.display ||= "block";
      this.addEventListener("click", (event) => {
        if (event.target.closest?.("button[type=submit], input[type=submit]")) this.submit();
      });
      whenParsed(() => this.finish());
    }
    finish() {
      if (!this.querySelector(SUBMITTERS)) {
        const button = make("crowd-button", { textContent: "Submit" });
        button.setAttribute("form-action", "submit");
        button.setAttribute("variant", "primary");
        this.append(button);
      }
      if (!isPreview) return;
      for (const button of this.querySelectorAll(SUBMITTERS)) button.disabled = true;
      this.append(make("p", { textContent: "This is a preview: accept the HIT to submit your work." }));
    }
    get answerable() {
      return [...this.querySelectorAll("*")].filter((element) =>
        element.collect || element.complain || (element.matches(NATIVE) && !UNANSWERABLE.has(element.type)));
    }
    get unknown() { return this.querySelector(UNSUPPORTED.join()); }
    checkAnswers() {
      const wrong = this.answerable.filter((element) =>
        element.complain ? !element.complain() : !element.disabled && !element.checkValidity());
      wrong[0]?.focus();
      if (wrong[0] && !wrong[0].complain) wrong[0].reportValidity();
      return wrong.length === 0;
    }
    answers() {
      const answers = {};
      for (const element of this.answerable) {
        if (element.collect) element.collect(answers);
        else if (element.complain || element.disabled) continue;
        else if (element.type === "checkbox" || element.type === "radio") {
          (answers[element.name] ??= {})[element.value] = element.checked;
        } else if (element.multiple) {
          answers[element.name] = [...element.selectedOptions].map((option) => option.value);
        } else answers[element.name] = element.value;
      }
      return answers;
    }
    submit() {
      if (isPreview || this.isSent || this.unknown || !this.checkAnswers()) return;
      if (!this.dispatchEvent(new Event("submit", { bubbles: true, cancelable: true }))) return;
      this.isSent = true;
      const answers = this.answers();
      const isFlat = this.getAttribute("answer-format") === "flatten-objects";
      post(isFlat ? flatten(answers) : [["taskAnswers", JSON.stringify([answers])]]);
    }
  }

  function flatten(value, path = "") {
    if (value === null || typeof value !== "object" || Array.isArray(value)) {
      return [[path, typeof value === "string" ? value : JSON.stringify(value)]];
    }
    return Object.entries(value).flatMap(([key, inner]) => flatten(inner, path ? `${path}.${key}` : key));
  }

  function post(fields) {
    const form = make("form", { method: "post", action: `${submitTo}/mturk/externalSubmit`, hidden: true });
    for (const [name, value] of [["assignmentId", assignmentId], ...fields]) {
      form.append(make("input", { type: "hidden", name, value }));
    }
    document.body.append(form);
    HTMLFormElement.prototype.submit.call(form);
  }

  // What draws on images and texts is not offered here; the worker gets a message.
  const UNSUPPORTED = ["crowd-bounding-box", "crowd-keypoint", "crowd-line", "crowd-polygon", "crowd-polyline",
    "crowd-semantic-segmentation", "crowd-instance-segmentation", "crowd-entity-annotation"];
  class CrowdUnsupported extends HTMLElement {
    connectedCallback() {
      const message = make("p", { textContent: `This task needs <${this.localName}>, which this marketplace doesn't offer. Please return the HIT.` });
      message.setAttribute("role", "alert");
      this.replaceChildren(message);
    }
  }

  const elements = {
    "crowd-button": CrowdButton, "crowd-input": CrowdInput, "crowd-text-area": CrowdTextArea,
    "crowd-slider": CrowdSlider, "crowd-checkbox": CrowdCheckbox,
    "crowd-radio-button": CrowdRadioButton, "crowd-radio-group": CrowdRadioGroup,
    "crowd-classifier": CrowdClassifier, "crowd-image-classifier": class extends CrowdClassifier {},
    "crowd-classifier-multi-select": CrowdMultiClassifier,
    "crowd-image-classifier-multi-select": class extends CrowdMultiClassifier {},
    "crowd-instructions": CrowdInstructions, "crowd-form": CrowdForm,
  };
  for (const name of UNSUPPORTED) elements[name] = class extends CrowdUnsupported {};
  for (const [name, element] of Object.entries(elements)) customElements.define(name, element);
})();
