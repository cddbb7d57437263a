// Practice: once all is answered, what is right and why, beside each answer; from then on it is
// handed in as it was.
const lesson = task.practice, verdict = find("#verdict"), next = find("p", verdict);
let isLearnt = false, isPassed = false, isLast;

// The answer and what would be right, on the line or among the options.
function draw({ node, value }, low, high) {
  for (const input of all("[type=radio]", node)) input.parentNode.classList.toggle("right", input.value >= low && input.value <= high);
  const input = find("[type=range]", node);
  if (!input) return;
  const { min, max } = input;
  if (!find("output", node)) input.parentNode.append(make("output", { ariaHidden: true }));
  find("output", node).value = value;
  for (const [name, end] of Object.entries({ low, high })) input.style.setProperty(`--${name}`, (end - min) / (max - min));
  all(".ends span", node).forEach((end, at, { length }) => {
    if (!at || at === length - 1) end.append(` (${at ? max : min})`);
  });
}
function explain({ candidate, question, least: low, most: high, right, feedback }) {
  const field = fieldOf(question, candidate), { value } = field;
  const isRight = appears(field) && value !== null && value >= low && value <= high;
  const words = make("b", { textContent: isRight ? text("right") : text("wrong", { right }) });
  const why = feedback ? [make("span", { textContent: feedback, dir: "auto" })] : [];
  // A tick fills its card: what is said of it stands below.
  const place = field.node.classList.contains("pick") ? field.node.parentNode : field.node;
  draw(field, low, high);
  place.append(make("p", { className: `feedback ${isRight ? "is-right" : "is-wrong"}` }, words, ...why));
  return isRight;
}
function teach() {
  if (isLearnt) return;
  isLearnt = true;
  const n = lesson.answers.filter(explain).length;
  isPassed = n >= lesson.needed;
  verdict.hidden = false;
  // A tick at a question says that it is answered, which would now be taken for right.
  main.classList.add("learnt");
  verdict.classList.toggle("is-wrong", !isPassed);
  find("h2", verdict).textContent = text(isPassed ? "passed" : "failed", { n, total: lesson.answers.length, needed: lesson.needed });
  sayNext();
  lock();
  send = submit.textContent = text("hand-in");
}
// Only a marketplace that says so knows whether another HIT is left to this worker.
function sayNext() {
  const failed = isLast === undefined ? "failed-next" : isLast ? "failed-last" : "failed-more";
  next.textContent = text(isPassed ? "passed-next" : failed);
}
const heardOfWork = heard["assay:work"];
heard["assay:work"] = (message) => {
  isLast = message.isLast;
  heardOfWork(message);
  if (isLearnt) sayNext();
};
// Kept with the draft, so that a page loaded again, or elsewhere, is as it was.
const learnt = { key: "verdict", value: null, seconds: null, at: 0, pasted: false, node: verdict };
learnt.show = () => { if (learnt.value && !missing().length) teach(); };
entries.push(learnt);
if (ready) merge(first);

const handIn = form.onsubmit;
form.onsubmit = (event) => {
  if (isLearnt || sent || over || !form.getAttribute("action") || missing().length) return handIn(event);
  event.preventDefault();
  mark([]);
  give(learnt, true);
  save();
  goTo(verdict);
};
afterReview = () => {
  teach();
  next.hidden = true;
};
