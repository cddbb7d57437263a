// The time left, by the server's clock: a worker's own may be hours off.

// Milliseconds by the server's clock, from what that said when it made the page.
export class ServerClock {
  constructor(now) { this.set(now); }
  set(now) { this.ahead = Date.parse(now) - Date.now(); }
  now() { return Date.now() + this.ahead; }
}

export const secondsUntil = (deadline, clock) =>
  Math.max(0, Math.ceil((Date.parse(deadline) - clock.now()) / 1000));

// A text of the page with its values, {like} this.
export const fill = (text, values) => text.replace(/\{(\w+)\}/g, (_, key) => values[key]);

// A duration in the page's own words: hours, minutes or seconds.
export function duration(seconds, texts) {
  const h = Math.floor(seconds / 3600), m = Math.floor((seconds % 3600) / 60), s = seconds % 60;
  return fill(h ? texts.hours : m ? texts.minutes : texts.seconds, { h, m, s });
}

// Calls with the seconds left, each second, and stops at 0 unless the deadline moves.
export function everySecond(action) {
  action();
  return setInterval(action, 1000);
}
