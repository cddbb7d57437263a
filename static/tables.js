// On a telephone a row of a table is a block of labelled lines (assay.css): each cell takes the
// heading of its column. Without this script tables scroll.

// Within what is folded there is no `innerText`.
function words(cell) {
  return (cell.innerText || cell.textContent).replace(/[▲▼]/g, "").replace(/\s+/g, " ").trim();
}

function label(table) {
  const [heads, ...others] = table.tHead?.rows ?? [];
  if (!heads || others.length) return;
  const names = [...heads.cells].map((cell) => words(cell));
  for (const row of [...table.tBodies].flatMap((body) => [...body.rows])) {
    let column = 0;
    for (const cell of row.cells) {
      cell.dataset.label = names[column] ?? "";
      column += cell.colSpan;
    }
  }
  table.classList.add("labelled");
}

function labelAll(root) {
  root.querySelectorAll(".scroll > table:not(.labelled, .matrix)").forEach(label);
}

labelAll(document);
document.body.addEventListener("htmx:load", (event) => labelAll(event.target));
