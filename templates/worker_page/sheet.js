// The whole conversation, where only its last turn is pinned.

const sheet = find("#sheet"), whole = find("#whole");
{
  whole.onclick = () => {
    find("div", sheet).replaceChildren(...all("#context > :not(h2)").map((each) => each.cloneNode(true)));
    tell({ type: "assay:enlarge", isOn: true });
    sheet.showModal();
  };
  find("button", sheet).onclick = () => sheet.close();
  sheet.onclose = () => tell({ type: "assay:enlarge", isOn: false });
}
// The last turn stands in the context; in a narrow window it is pinned from here. The only turn is
// pinned and nowhere else, with a way to all of it where it is cut off.
{
  const turns = all(".turns li", find("#context")), last = turns[turns.length - 1];
  const lines = (last ? find(".text", last) : find("#context > .text")).textContent.trim().split("\n");
  const text = find(".last .text");
  // What products are held against stands in the first line: what is looked for.
  const isHeldAgainst = !last && lines.length > 1 && "first" in text.parentNode.dataset;
  text.textContent = last ? lines.join("\n") : [...(isHeldAgainst ? lines.slice(0, 1) : []), lines[lines.length - 1]].join("\n");
  if (last) find(".last .speaker").textContent = find(".who", last).textContent;
  const isCut = (box) => box.scrollHeight > box.clientHeight, early = find("#context > .early");
  const offer = () => {
    if (early.matches(".pinned")) whole.hidden = !isCut(text);
    early.classList.toggle("cut", isCut(early));
  };
  addEventListener("resize", offer);
  offer();
}
