// Colours of parts (packages, the program, libraries), light and dark. The eight hues are distinct
// for colour-blind readers, too (the browser test measures it). Colour is never the only
// distinction: the legend, the frame's label and its description name the part.
"use strict";

// The value of a custom property of page.css, in a form that the canvas accepts.
report.colour = (name) => {
  const probe = document.getElementById("announcement");
  probe.style.color = `var(--${name})`;
  const colour = getComputedStyle(probe).color;
  probe.style.color = "";
  return colour;
};

report.hues = 8;

// The parts in order of the bytes allocated through them, and the hue of each location. The first
// eight parts have a hue, the others share a grey. Computed once, so that a part keeps its colour.
report.parts = (data) => {
  if (data.parts) return data.parts;
  const keys = report.locationKeys(data, "module");
  const all = {bytes: new Float64Array(data.nodes), count: new Float64Array(data.nodes), others: 0};
  for (let row = 0; row < data.rows; ++row) {
    all.bytes[data.row_node[row]] += Math.max(data.row_live_bytes[row], data.row_peak_bytes[row]);
  }
  const below = report.subtrees(data, all).bytes;
  const sums = new Map();
  for (let node = 1; node < data.nodes; ++node) {
    const key = keys[data.node_place[node]];
    if (keys[data.node_place[data.node_parent[node]]] === key && data.node_parent[node] !== 0)
      continue;
    sums.set(key, (sums.get(key) ?? 0) + below[node]);
  }
  const dull = ["Python's library", "notes of the recorder", "(unknown)"];
  const machinery = report.kind.interpreter | report.kind.imports | report.kind.allocator;
  const names =
      [...sums]
          .map(([key, sum]) => ({key, sum, name: report.text(report.partOf(data, key), 40)}))
          .sort((a, b) => b.sum - a.sum || a.key - b.key);
  let hue = 0;
  const hueOf = new Int8Array(data.locations).fill(-1);
  const program = names.find((part) => part.name === "the program");
  for (const part of program ? [program, ...names.filter((other) => other !== program)] : names) {
    const plain = dull.includes(part.name) || data.place_kind[part.key] & machinery;
    part.hue = hue < report.hues && !plain ? hue++ : -1;
    hueOf[part.key] = part.hue;
  }
  data.parts = {names, hueOf: hueOf.map((_, location) => hueOf[keys[location]])};
  return data.parts;
};

// The current theme's colours for the canvas. `grounds`: the hues' backgrounds; the last is the
// grey.
report.palette = () => {
  const names = [...Array(report.hues).keys(), "other"];
  return {
    grounds: names.map((name) => report.colour(`hue-${name}`)),
    ink: report.colour("frame-ink"),
    paper: report.colour("paper"),
    line: report.colour("ink"),
    faint: report.colour("faint"),
    mark: report.colour("mark"),
    quiet: report.colour("quiet"),
  };
};
