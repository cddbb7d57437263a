// Pictures that did not come, or not yet: what was not seen is not judged.

const pictures = all(".task img");
const cardOf = (image) => image.closest(".card, .target, .context") || image.parentNode;
const isSeen = (image) => image.complete && image.naturalWidth > 0;
function pictureFailed(image) {
  const shot = image.closest(".shot");
  if (find(".broken", shot.parentNode)) return;
  const again = make("button", { type: "button", textContent: text("again") });
  const report = make("button", { type: "button", textContent: text("report") });
  const words = make("p", { textContent: text("broken") });
  const row = make("div", { className: "broken" }, words, make("p", { className: "row" }, again, report));
  row.setAttribute("role", "group");
  row.ariaLabel = text("broken");
  shot.after(row);
  again.onclick = (event) => {
    event.preventDefault();
    const address = image.src;
    image.src = "data:,";
    row.remove();
    image.src = address;
    refresh();
  };
  report.onclick = (event) => {
    event.preventDefault();
    const card = cardOf(image).dataset.candidate;
    tell({ type: "assay:report", text: `${text("broken")}: ${letterOf[card] || ""} ${image.alt}`.trim() });
    words.textContent = text("reported");
    words.setAttribute("role", "status");
    report.remove();
  };
  refresh();
}
for (const image of pictures) {
  image.onerror = () => image.src !== "data:," && pictureFailed(image);
  image.onload = () => refresh();
  if (image.complete && !image.naturalWidth) pictureFailed(image);
}
checks.push(() => pictures.filter((image) => !isSeen(image)).map((image) => {
  const node = cardOf(image), letter = letterOf[node.dataset.candidate], problem = find(".broken button", node);
  return { node, input: problem || control(node) || node, text: (letter ? `${letter}: ` : "") + text(problem ? "broken" : "loading") };
}));
refresh();
