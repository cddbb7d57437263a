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
  problem: ({ value, asked, label }) => value < asked.min || value > asked.max || (asked.whole && value % 1)
    ? text(asked.whole ? "whole" : "number", { question: label, min: asked.min, max: asked.max }) : "",
};
