kinds.number = {
  start: (field, set) => {
    const input = find("input", field.node);
    input.oninput = () => set(Number.isNaN(input.valueAsNumber) ? null : input.valueAsNumber);
    // A wheel over it is meant to scroll.
    input.onwheel = () => input.blur();
  },
  show({ node, value }) {
    const input = find("input", node);
    if (input !== document.activeElement || value !== null) input.value = value ?? "";
  },
  problem: ({ value, question, label }) => value < question.min || value > question.max || (question.whole && value % 1)
    ? text(question.whole ? "whole" : "number", { question: label, min: question.min, max: question.max }) : "",
};
