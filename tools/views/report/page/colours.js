// Colours of parts (packages, the program, libraries), light and dark. Eight hues that the
// colour-blind can tell apart too (the browser test measures it); a colour never stands alone: the
// legend, the frame's label and its description name the part.
"use strict";

// The value of a custom property of page.css as the canvas can use it.
report.colour = (name) => {
  const probe = document.getElementById("announcement");
  probe.style.color = `var(--${name})`;
  const colour = getComputedStyle(probe).color;
  probe.style.color = "";
  return colour;
};

report.hues = 8;

// The parts in order of what passes through them, and which place belongs to which: the first eight
// have a hue, the others share a grey. Made once, so that a part keeps its colour.
report.parts = (data) => {
  if (data.parts) return data.parts;
  const keys = report.placeKeys(data, "module");
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
  const hueOf = new Int8Array(data.places).fill(-1);
  const program = names.find((part) => part.name === "the program");
  for (const part of program ? [program, ...names.filter((other) => other !== program)] : names) {
    const plain = dull.includes(part.name) || data.place_kind[part.key] & machinery;
    part.hue = hue < report.hues && !plain ? hue++ : -1;
    hueOf[part.key] = part.hue;
  }
  data.parts = {names, hueOf: hueOf.map((_, place) => hueOf[keys[place]])};
  return data.parts;
};

// The colours of the theme in force, as the canvas takes them. `grounds`: of a hue at two
// lightnesses, so that neighbours of a part are told apart; the last is the grey.
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
