// Any of several; that it is none is said too.
kinds.categories = {
  start: (field, set) => {
    field.node.onchange = ({ target }) => {
      const values = all(":checked", field.node).map((input) => input.value).filter(Boolean).map(Number);
      if (target.value === "") set(target.checked ? [] : null);
      else set(values.length ? values : null);
    };
  },
  show({ node, value }) {
    for (const input of all("input", node))
      input.checked = value !== null && (input.value ? value.includes(+input.value) : !value.length);
  },
  problem: ({ value, question, label }) => value.length < question.least || value.length > question.most
    ? text("choose", { question: label, least: question.least, most: question.most }) : "",
};
