// One of several: points, categories, yes or no, or one of the candidates.
kinds.radio = {
  start: (field, set) => {
    const isOne = field.asked.kind === "preference";
    field.node.onchange = ({ target }) => set(isOne ? target.value || "tie" : +target.value);
  },
  show({ node, value, asked }) {
    const shown = asked.kind === "preference" && value === "tie" ? "" : String(value);
    for (const input of all("input", node)) input.checked = value !== null && input.value === shown;
  },
};
