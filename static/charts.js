// Draws every chart of a page that can be seen from its specification, in the page's light or dark.
// Expressions are interpreted, never compiled, so that the page needs no `unsafe-eval`.

const dark = matchMedia("(prefers-color-scheme: dark)");

async function draw(place) {
  const where = new URL(place.dataset.chart, location.href);
  where.searchParams.set("theme", dark.matches ? "dark" : "light");
  try {
    const answer = await fetch(where, { headers: { Accept: "application/json" } });
    if (!answer.ok) throw new Error(`the site answered ${answer.status}`);
    await vegaEmbed(place, await answer.json(), {
      ast: true, actions: false, renderer: "svg", defaultStyle: false,
      tooltip: { disableDefaultStyle: true },
    });
    place.dataset.drawn = dark.matches ? "dark" : "light";
  } catch (problem) {
    place.textContent = `The chart could not be drawn: ${problem.message}. Its data are below.`;
  }
}

// What is folded has no width to fill: it is drawn once it is unfolded.
function drawAll(within, places = "[data-chart]") {
  for (const place of within.querySelectorAll(places)) {
    if (!place.closest("details:not([open])")) draw(place);
  }
}

drawAll(document);
dark.addEventListener("change", () => drawAll(document));
document.addEventListener("toggle", (event) => {
  const drawn = dark.matches ? "dark" : "light";
  drawAll(event.target, `[data-chart]:not([data-drawn="${drawn}"])`);
}, true);
