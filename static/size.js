// The buttons of the panel "Size, cost and precision" change a field of the form, as typing does.
document.addEventListener("click", ({ target }) => {
  const button = target.closest?.("[data-step][data-field]");
  const field = button && document.getElementById(button.dataset.field);
  if (!field) return;
  field.value = Math.max(1, (parseInt(field.value, 10) || 1) + Number(button.dataset.step));
  field.dispatchEvent(new Event("input", { bubbles: true }));
  button.parentElement.querySelector("output").value = field.value;
});
