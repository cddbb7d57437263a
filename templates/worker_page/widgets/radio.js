// One of several: points, categories, yes or no, or one of the candidates.
kinds.radio = {
  start: (field, set) => {
    const isOne = field.question.kind === "preference";
    field.node.onchange = ({ target }) => set(isOne ? target.value || "tie" : target.value === "cannot_tell" ? target.value : +target.value);
  },
  show({ node, value, question }) {
    const shown = question.kind === "preference" && value === "tie" ? "" : String(value);
    for (const input of all("input", node)) input.checked = value !== null && input.value === shown;
  },
};
