// A tick; what is not ticked is a no.
kinds.selection = {
  start: (field, set) => {
    find("input", field.node).onchange = ({ target }) => set(+target.checked);
  },
  show({ node, value }) { find("input", node).checked = value === 1; },
};
