// Reasons that are there twice, or copied from the page: asked about once.
let isAsked = false;
const plain = (raw) => raw.toLowerCase().replace(/\s+/g, " ").trim();
function doubtful() {
  const shown = plain(all(".text, .prose", main).map((each) => each.textContent).join(" ")), seen = [];
  return [...fields, ...whys, reason].flatMap((entry) => {
    const box = entry?.input || (entry && control(entry.node));
    if (box?.type !== "textarea" || entry.node.hidden) return [];
    const said = plain(box.value), name = entry.label || letterOf[entry.candidate];
    const found = said.length > 14 && (seen.includes(said) ? "twice" : shown.includes(said) && "copied");
    seen.push(said);
    return found ? [{ input: box, text: (name ? `${name}: ` : "") + text(found) }] : [];
  });
}
const handOver = form.onsubmit;
form.onsubmit = (event) => {
  const doubts = isAsked || sent || over || missing().length ? [] : doubtful();
  if (!doubts.length) return handOver(event);
  event.preventDefault();
  isAsked = tried = true;
  list(text("ask"), doubts);
  goTo(problems);
};
