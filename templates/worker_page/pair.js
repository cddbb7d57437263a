// Target beside candidate, as large as the window.

const pair = find("#pair");
function enlarge(image, card) {
  const target = find(".target img"), [left, right] = all("figure", pair), key = card.dataset.candidate;
  const fillIn = (figure, from, words) => {
    figure.hidden = !from;
    if (from) Object.assign(find("img", figure), { src: from.src, alt: from.alt });
    find("figcaption", figure).textContent = words;
  };
  fillIn(left, target, find(".target .text").textContent);
  fillIn(right, key && image, key && `${letterOf[key]} ${find(".text", card).textContent}`);
  const pick = find("#pick"), box = key && find("input", card);
  pick.hidden = !key || box.disabled;
  const name = () => { pick.textContent = text(box?.checked ? "untick" : "tick-this"); };
  pick.onclick = () => { box.click(); name(); };
  name();
  larger(false);
  tell({ type: "assay:enlarge", isOn: true });
  pair.showModal();
  find("#shut").focus();
}
function larger(isOn) {
  pair.classList.toggle("larger", isOn);
  find("#larger").ariaPressed = isOn;
  // From the middle on, where the product is.
  for (const box of all("figure > div", pair)) box.scrollTo((box.scrollWidth - box.clientWidth) / 2, (box.scrollHeight - box.clientHeight) / 2);
}
for (const button of all(".enlarge")) {
  const card = cardOf(button);
  button.onclick = () => enlarge(find("img", card), card);
  card.onkeydown = (event) => { if (/^z$/i.test(event.key) && !event.ctrlKey && event.target.type !== "textarea") button.click(); };
}
{
  find("#shut").onclick = () => pair.close();
  find("#larger").onclick = () => larger(!pair.classList.contains("larger"));
  pair.onclose = () => tell({ type: "assay:enlarge", isOn: false });
}

