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
