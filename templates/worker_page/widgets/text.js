kinds.text = kinds.short_text = kinds.long_text = {
  start: (field, set) => {
    const input = find("input, textarea", field.node);
    input.oninput = () => set(input.value.trim() ? input.value : null);
    input.onpaste = input.ondrop = () => { field.pasted = true; };
  },
  show({ node, value }) {
    const input = find("input, textarea", node), count = find(".count", node);
    if (input.value.trim() !== (value || "").trim()) input.value = value || "";
    if (count) count.textContent = lengthOf(value);
  },
  problem: ({ value, question, label }) => lengthOf(value) < question.least_length
    ? text("words", { question: label, n: lengthOf(value), least: question.least_length }) : "",
};
