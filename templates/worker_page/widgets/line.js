// A range always has a value; until it is touched, ours has none and shows none.
kinds.line = {
  start(field, set) {
    const input = find("input", field.node), low = +input.min, high = +input.max;
    const tenth = Math.max(1, Math.round((high - low) / 10)), left = isRtl ? 1 : -1;
    const give = (value) => set(Math.min(high, Math.max(low, value)));
    // The unseen thumb must not catch the press: the answer is where the worker pressed.
    const press = (event) => {
      if (field.value !== null || event.button || input.disabled) return;
      const box = input.getBoundingClientRect();
      const share = (event.clientX - box.left - 12) / (box.width - 24);
      give(low + Math.round((isRtl ? 1 - share : share) * (high - low)));
    };
    // A finger that comes down may be about to scroll: then all is as it was.
    let before = null;
    input.onpointerdown = (event) => {
      before = [field.value, field.seconds, field.at];
      if (event.pointerType === "mouse") press(event);
    };
    input.onpointerup = (event) => { if (event.pointerType !== "mouse") press(event); };
    input.onpointercancel = () => before && set(...before);
    input.oninput = () => give(input.valueAsNumber);
    input.onkeydown = (event) => {
      const now = input.valueAsNumber;
      const to = {
        ArrowLeft: now + left, ArrowRight: now - left, ArrowDown: now - 1, ArrowUp: now + 1,
        PageDown: now - tenth, PageUp: now + tenth, Home: low, End: high, " ": now,
      }[event.key];
      if (to === undefined || event.ctrlKey || event.altKey || event.metaKey) return;
      event.preventDefault();
      give(to);
    };
    for (const button of all("button", field.node)) button.onclick = () => give(input.valueAsNumber + +button.value);
  },
  // By its digits (keys.js).
  type(input, digit) {
    const joined = now() - pressed < 1e3 ? typed + digit : digit;
    // A number beyond the end of the scale starts again with its last digit.
    typed = +joined > input.max ? digit : joined;
    pressed = now();
    if (+typed < input.min || +typed > input.max) return;
    // Lines can hide their number; typing needs to show it, on all of them alike.
    for (const field of fields) if (field.question.kind === "line" && !find("output", field.node)) {
      find(".line", field.node).append(make("output", { ariaHidden: true }));
      show(field);
    }
    input.value = typed;
    input.dispatchEvent(new Event("input"));
    input.focus({ preventScroll: true });
  },
  show({ node, value }) {
    const input = find("input", node), number = find("output", node), empty = value === null;
    const { min, max } = input;
    input.value = value ?? input.defaultValue;
    input.style.setProperty("--share", empty ? -1 : (value - min) / (max - min));
    input.ariaValueText = text(empty ? "unanswered" : "scale", { value, min, max });
    if (number) number.value = empty ? "" : value;
  },
};
