// What the worker does on the page, and not what is typed: rows of seconds, kind and numbers, which
// annotation/evidence.py reads. Of each kind 30 at most; then the last one is replaced.
let events = [], gaps = [], nTyped = 0, typedAt = -1e9, isTouched = false, isJoined = false;
function record(kind, ...numbers) {
  const row = [seconds(), kind, ...numbers], same = events.filter((each) => each[1] === kind);
  if (!ready || over) return;
  if (same.length < 30) events.push(row);
  else same[29].splice(0, 9, ...row);
}
// The rows with a summary of typing: characters; gaps between them, their median and quartile range.
function recorded() {
  gaps.sort((a, b) => a - b);
  const at = (share) => Math.round(gaps[Math.floor(share * gaps.length)] || 0);
  return nTyped ? [...events, [seconds(), "typing", nTyped, gaps.length, at(0.5), at(0.75) - at(0.25)]] : events;
}
// What a draft has from before this page was loaded.
function join(earlier) {
  if (isJoined || !earlier?.length) return;
  isJoined = true;
  events = [...earlier, ...events];
}
// Which questions come into view.
function watch(list) {
  let n = 0;
  const observer = new IntersectionObserver((rows) => {
    const shown = rows.filter((row) => row.isIntersecting);
    for (const { target } of shown) observer.unobserve(target);
    n += shown.length;
    if (shown.length) record("seen", n, list.filter(appears).length);
  });
  for (const { node } of list) observer.observe(node);
}
for (const name of ["pointerdown", "keydown", "input", "paste", "drop", "blur", "focus", "visibilitychange"]) addEventListener(name, (event) => {
  const { type, target, isTrusted, inputType, data } = event, at = performance.now();
  if (type === "paste" || type === "drop") record("paste", (event.clipboardData || event.dataTransfer)?.getData("text").length || 0);
  else if (type === "visibilitychange") record(document.hidden ? "hide" : "show");
  else if (type === "blur" || type === "focus") { if (target === window) record(type); }
  else if (isTrusted && ready) {
    if (!isTouched) record("input");
    isTouched = true;
    if (!/^insert(?!From)/.test(inputType)) return;
    if (at - typedAt < 2000) gaps.push(at - typedAt);
    typedAt = at;
    nTyped += data?.length || 1;
  }
}, true);
