kinds.best_worst = {
  start: (field, set) => {
    const groups = all("[role=radiogroup]", field.node);
    field.node.onchange = () => {
      const [best, worst] = groups.map((group) => find(":checked", group)?.value ?? null);
      set(best || worst ? { best, worst } : null);
    };
  },
  show({ node, value }) {
    all("[role=radiogroup]", node).forEach((group, index) => {
      const chosen = value && (index ? value.worst : value.best);
      for (const input of all("input", group)) input.checked = input.value === chosen;
    });
  },
  problem: ({ value, label }) => !value.best || !value.worst ? label
    : value.best === value.worst ? text("same", { question: label }) : "",
};
