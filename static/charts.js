// Draws every chart of a page that can be seen from its specification. Its colors are variables of
// the page (tokens.css), so that it turns dark, or light on paper, with the page.
// Expressions are interpreted, never compiled, so that the page needs no `unsafe-eval`.

const NARROW = 560;
const FACET_WIDTH = 280;

async function draw(place) {
  try {
    const answer = await fetch(place.dataset.chart, { headers: { Accept: "application/json" } });
    if (!answer.ok) throw new Error(`the site answered ${answer.status}`);
    await vegaEmbed(place, fitted(await answer.text(), place.clientWidth), {
      ast: true, actions: false, renderer: "svg", defaultStyle: false,
      tooltip: { disableDefaultStyle: true },
    });
    place.dataset.drawn = "true";
    reachable(place.parentElement);
  } catch (problem) {
    place.textContent = `The chart could not be drawn: ${problem.message}. Its data are below.`;
  }
}

// Charts side by side go below one another, and names in a legend too, where they would be cut off;
// a legend above a chart ends where the chart does, and has the width of the axis's names as well.
function fitted(text, width) {
  const isNarrow = width < NARROW;
  const chart = JSON.parse(text, (key, value) =>
    isNarrow && key === "legend" && value ? { ...value, columns: 1 } : value);
  if (isNarrow && chart.config?.legend) chart.config.legend.layout = { top: { anchor: "end" } };
  if (chart.columns) {
    chart.columns = Math.max(1, Math.min(chart.columns, Math.floor(width / FACET_WIDTH)));
  }
  return chart;
}

// What is wider all the same scrolls, by keys too.
function reachable(frame) {
  if (frame.scrollWidth > frame.clientWidth) frame.tabIndex = 0;
  else frame.removeAttribute("tabindex");
}

// What is folded has no width to fill: it is drawn once it is unfolded.
function drawAll(within, places = "[data-chart]") {
  for (const place of within.querySelectorAll(places)) {
    if (!place.closest("details:not([open])")) draw(place);
  }
}

drawAll(document);
// Of the content that follows a job; htmx reports the whole page too, which is drawn.
document.addEventListener("htmx:load", ({ target }) => {
  if (target !== document.body) drawAll(target);
});
document.addEventListener("toggle", ({ target }) => {
  drawAll(target, "[data-chart]:not([data-drawn])");
}, true);
