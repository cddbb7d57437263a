// A field with data-copy that arrives in the page is copied. Where the browser forbids it, the
// field has the focus and is selected, so that the person can copy it.
document.addEventListener("htmx:load", async ({ detail }) => {
  const field = detail.elt.querySelector?.("[data-copy]");
  if (!field) return;
  field.focus();
  field.select();
  try {
    await navigator.clipboard.writeText(field.value);
  } catch {
    return;
  }
  field.parentElement.querySelector("[data-copied]")?.removeAttribute("hidden");
});

// A button with data-copy-text copies it.
document.addEventListener("click", async ({ target }) => {
  const button = target.closest?.("[data-copy-text]");
  if (!button) return;
  try {
    await navigator.clipboard.writeText(button.dataset.copyText);
  } catch {
    return;
  }
  button.textContent = button.dataset.done;
});

// This browser keeps the tables of the last ZIP that it downloaded. A table that has changed since
// then says so, with its former lines. The ZIP has the newest tables, the open page may not.
const downloaded = `downloaded:${location.pathname}`;
const parts = (root) => [...root.querySelectorAll("[data-part]")];
const latex = (part) => part.querySelector("[data-copy-text]").dataset.copyText;

document.addEventListener("click", async ({ target }) => {
  if (!target.closest?.("[data-downloads]")) return;
  const page = await (await fetch(location.href)).text();
  const tables = parts(new DOMParser().parseFromString(page, "text/html"));
  const day = new Date().toISOString().slice(0, 10);
  const saved = { day, tables: Object.fromEntries(tables.map((part) => [part.dataset.part, latex(part)])) };
  localStorage.setItem(downloaded, JSON.stringify(saved));
  showChanges();
});

function showChanges() {
  const saved = JSON.parse(localStorage.getItem(downloaded) || '{"tables":{}}');
  for (const part of parts(document)) {
    const [before, now] = [saved.tables[part.dataset.part], latex(part).split("\n")];
    const note = part.querySelector(".changed");
    note.hidden = !before || before === latex(part);
    if (note.hidden) continue;
    note.querySelector("time").textContent = saved.day;
    note.querySelector("pre").textContent = before.split("\n").filter((line) => !now.includes(line)).join("\n");
  }
}
document.addEventListener("htmx:load", showChanges);
