// localStorage and sessionStorage for a page on an opaque origin, which has none and trips over
// asking: pages written for Mechanical Turk take them for granted. The page around the frame
// keeps what is stored for as long as its tab lives (see worker.js), and gives it back in the
// frame's name, so that it is here before the page runs.
(function () {
  "use strict";
  const LARGEST = 200_000; // characters, of each
  try { if (window.localStorage) return; } catch { /* none: that is why we are here */ }

  const { token, areas } = given();
  const items = { local: new Map(areas.local), session: new Map(areas.session) };
  let isWaiting = false;

  function given() {
    try {
      const { token, items } = JSON.parse(window.name);
      return { token, areas: JSON.parse(items) };
    } catch {
      return { token: "", areas: {} };
    }
  }

  function keepSoon() {
    if (isWaiting) return;
    isWaiting = true;
    setTimeout(keep, 200);
  }

  function keep() {
    isWaiting = false;
    const text = JSON.stringify({ local: [...items.local], session: [...items.session] });
    window.name = JSON.stringify({ token, items: text }); // for a page that reloads itself
    window.parent.postMessage({ type: "assay:stored", token, items: text }, "*");
  }

  function sizeOf(entries) {
    return [...entries].reduce((size, [key, value]) => size + key.length + value.length, 0);
  }

  function makeStorage(entries) {
    const methods = {
      key: (index) => [...entries.keys()][index] ?? null,
      getItem: (key) => entries.get(String(key)) ?? null,
      setItem(key, value) {
        const changed = new Map(entries).set(String(key), String(value));
        if (sizeOf(changed) > LARGEST) throw new DOMException("The storage is full.", "QuotaExceededError");
        entries.set(String(key), String(value));
        keepSoon();
      },
      removeItem(key) { if (entries.delete(String(key))) keepSoon(); },
      clear() { entries.clear(); keepSoon(); },
    };
    return new Proxy({}, {
      get: (_, name) => (name === "length" ? entries.size : methods[name] ?? entries.get(name)),
      set(_, name, value) { methods.setItem(name, value); return true; },
      has: (_, name) => name === "length" || name in methods || entries.has(name),
      deleteProperty(_, name) { methods.removeItem(name); return true; },
      ownKeys: () => [...entries.keys()],
      getOwnPropertyDescriptor: (_, name) => (entries.has(name)
        ? { value: entries.get(name), writable: true, enumerable: true, configurable: true } : undefined),
    });
  }

  for (const area of ["local", "session"]) {
    const value = makeStorage(items[area]);
    Object.defineProperty(window, `${area}Storage`, { value, configurable: true, enumerable: true });
  }
  window.addEventListener("pagehide", () => { if (isWaiting) keep(); });
})();
