// A place for each; the answer is groups of candidates from the best to the worst.
kinds.ranking = {
  start: (field, set) => {
    field.node.onchange = () => {
      const places = Object.fromEntries(
        all("select", field.node).filter((each) => each.value).map((each) => [each.dataset.key, +each.value]));
      set(Object.keys(places).length ? places : null);
    };
  },
  show({ node, value }) {
    for (const select of all("select", node)) select.value = value?.[select.dataset.key] ?? "";
  },
  problem: ({ value, question, label }) => Object.keys(value).length < task.candidates.length ? label
    : !question.ties && new Set(Object.values(value)).size < task.candidates.length
      ? text("same", { question: label }) : "",
  answer: ({ value }) => Object.values(Object.keys(value).reduce((groups, key) => {
    (groups[value[key]] ??= []).push(key);
    return groups;
  }, {})),
};
