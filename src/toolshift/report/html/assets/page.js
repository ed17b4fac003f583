(function () {
  "use strict";
  var root = document.documentElement;
  root.classList.add("js");

  // -- light and dark ---------------------------------------------------------------------------
  var button = document.getElementById("theme");
  var dark = window.matchMedia("(prefers-color-scheme: dark)");
  function isDark() {
    return root.dataset.theme ? root.dataset.theme === "dark" : dark.matches;
  }
  function label() {
    button.textContent = isDark() ? "Light" : "Dark";
  }
  button.hidden = false;
  button.addEventListener("click", function () {
    root.dataset.theme = isDark() ? "light" : "dark";
    label();
  });
  dark.addEventListener("change", label);
  label();

  // -- charts -----------------------------------------------------------------------------------
  var specs = JSON.parse(document.getElementById("charts").textContent);
  var places = Array.from(document.querySelectorAll("[data-chart]"));
  var column = document.querySelector("main");
  var config = {
    background: null,
    aria: false,
    font: "system-ui, sans-serif",
    view: { stroke: null },
    axis: {
      labelColor: "var(--muted)", titleColor: "var(--muted)", gridColor: "var(--line)",
      domainColor: "var(--line)", tickColor: "var(--line)", labelFontSize: 12,
      titleFontSize: 12, titleFontWeight: 400, titlePadding: 8
    },
    axisY: { grid: false },
    header: { labelColor: "var(--ink)", labelFontSize: 12, labelFontWeight: 600, titleColor: "var(--muted)" },
    legend: { labelColor: "var(--ink)", titleColor: "var(--muted)", labelFontSize: 12 }
  };

  var GAP = 20; // between panels, as Vega-Lite has it

  // The width of a panel, and how many stand in a row, follow from the width of the page.
  function fitted(spec, width) {
    var made = JSON.parse(JSON.stringify(spec));
    var extra = made.usermeta || {};
    if (!made.facet) {
      made.width = width;
      made.autosize = { type: "fit-x", contains: "padding" };
      return made;
    }
    var across = extra.across || width;
    var room = width - (extra.labels || 44) - 8; // the axis stands at the first panel only
    var count = new Set(made.data.values.map(function (v) { return v[made.facet.field]; })).size;
    var fits = Math.max(1, Math.floor((room + GAP) / (across + GAP)));
    var columns = made.columns === 1 ? 1 : Math.min(fits, count);
    var each = Math.floor((room - GAP * (columns - 1)) / columns);
    made.columns = columns;
    made.spec.width = Math.max(80, extra.across ? Math.min(each, across * 1.7) : each);
    made.facet.header.labelLimit = made.spec.width + (columns === 1 ? 60 : GAP - 8);
    return made;
  }

  async function draw(place) {
    var box = place.getBoundingClientRect().width;
    var width = Math.floor(box || column.clientWidth - 48);
    if (place.dataset.width === String(width)) return;
    place.dataset.width = String(width);
    var spec = fitted(specs[place.dataset.chart], width);
    try {
      // Vega gives its element a role of its own; the place keeps its role and its words.
      var canvas = document.createElement("div");
      canvas.setAttribute("aria-hidden", "true");
      place.replaceChildren(canvas);
      await vegaEmbed(canvas, spec, {
        config: config, renderer: "svg", actions: false, ast: true, defaultStyle: false,
        logLevel: vega.Error
      });
      place.classList.add("drawn");
    } catch (fault) {
      place.textContent = "This chart could not be drawn; its figures are in the table.";
      console.error(fault);
    }
  }

  async function drawAll() {
    for (var place of places) {
      await draw(place);
      await new Promise(function (next) { setTimeout(next, 0); });
    }
    root.dataset.ready = "yes";
  }

  // Without a script the tables stand open; with charts beside them they are folded.
  document.querySelectorAll("details.figures").forEach(function (each) { each.open = false; });
  var waiting;
  window.addEventListener("resize", function () {
    clearTimeout(waiting);
    waiting = setTimeout(drawAll, 150);
  });
  document.querySelectorAll("details.agent").forEach(function (each) {
    each.addEventListener("toggle", drawAll);
  });
  window.addEventListener("beforeprint", function () {
    document.querySelectorAll("details.agent").forEach(function (each) { each.open = true; });
  });

  // A link to what is folded away unfolds it.
  function reveal() {
    var target = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    for (var at = target; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
    if (target) target.scrollIntoView();
  }
  window.addEventListener("hashchange", reveal);
  reveal();
  drawAll();
})();
