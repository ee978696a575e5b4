// The flame graph's view: the controls above it, the drawing, and the description of a frame.
"use strict";

const flameTree = (data, state) => {
  const {nodes, shown, keys} = report.chosen(data, state);
  const name = state.inverted === "" ? "tree" : "inverted";
  const chosen = data.chosen;
  chosen[name] ??=
      new (name === "tree" ? report.Tree : report.InvertedTree)(data, nodes, shown, keys);
  return chosen[name];
};

// In a window always bytes: checkpoints have no counts.
const flameBy = (state) => (state.mode.startsWith("window_") ? "bytes" : state.by);

report.views.flame = {
  title: "Flame graph",
  selection: true,

  draw(data, panel) {
    const {element} = report;
    this.canvas = new report.FlameCanvas(data);
    this.search = element("input", {
      type: "search",
      placeholder: "Search: regular expression ( / )",
      "aria-label": "Search functions, files and modules by regular expression",
      value: report.state.search,
      oninput: (event) => report.change({search: event.target.value})
    });
    this.matched = element("output", {class: "matched", "aria-live": "polite"});
    this.bar = element("div", {class: "bar"});
    this.path = element("nav", {class: "path", "aria-label": "Frames around the zoomed one"});
    this.about = element("div", {class: "about"});
    this.legend = element("ul", {class: "legend"});
    this.source = report.sourcePane(data);
    this.behind = report.behind(
        "The zoomed frame as a table", ["what", "frame", "bytes", "blocks", "share"],
        () => this.tableRows(data));
    panel.append(
        this.bar, this.path, this.about,
        element("div", {class: "beside"}, this.canvas.element, this.source?.element), this.legend,
        this.behind);
    report.steerFlame(this.canvas, {
      describe: (node) => this.describe(data, node),
      zoom: (node) => report.change({zoom: report.pathOf(this.canvas.tree, node).join(".")}),
      search: () => this.search.focus(),
    });
    this.drawBar();
    this.update(data);
  },

  drawBar() {
    const {element, state} = report;
    const window = state.mode.startsWith("window_");
    this.bar.replaceChildren(
        report.select(
            "Size by",
            [["bytes", "bytes"], ["count", "blocks", window ? "checkpoints have none" : null]],
            flameBy(state), (by) => report.change({by})),
        report.checkbox(
            "inverted", state.inverted !== "",
            (on) => report.change({inverted: on ? "1" : "", zoom: ""}),
            "From the allocating function (top) to its callers (below)"),
        report.checkbox(
            "separate lines", state.lines === "lines",
            (on) => report.change({lines: on ? "lines" : "functions", zoom: ""}),
            "One frame for each line of a function"),
        element(
            "button", {disabled: state.zoom === "", onclick: () => report.change({zoom: ""})},
            "Show all"),
        this.search, this.matched);
  },

  update(data) {
    const {state} = report;
    const {canvas} = this;
    const by = flameBy(state);
    const tree = flameTree(data, state);
    const expression = report.expression(state.search);
    canvas.set(tree, by, expression ? report.matchingLocations(data, expression) : null);
    const path = state.zoom === "" ? [] : state.zoom.split(".").map(Number);
    canvas.zoom = report.nodeAt(tree, path, by);
    canvas.at = -1;
    canvas.over = -1;
    canvas.show();
    this.drawMatched(data, by);
    this.drawPath(data);
    this.drawLegend(data);
    this.describe(data, -1);
    this.behind.open = false;
  },

  drawMatched(data, by) {
    const {canvas} = this;
    if (!canvas.matches) {
      this.matched.textContent = "";
      return;
    }
    const {nodes, shown} = data.chosen;
    const sum = report.matchedShare(data, nodes, shown, canvas.matches, by);
    const whole = canvas.tree[by][0];
    this.matched.textContent = `matched ${report.share(sum, whole)}: ${
        by === "bytes" ? report.bytes(sum) : report.plural(sum, "block", "blocks")}`;
  },

  // The path from the root to the zoomed frame, to zoom out by.
  drawPath(data) {
    const {element} = report;
    const {tree, zoom} = this.canvas;
    const nodes = [];
    for (let node = zoom; node !== 0; node = tree.parent[node]) nodes.push(node);
    nodes.push(0);
    nodes.reverse();
    if (zoom === 0) {
      const hint = tree.bytes[0] === 0 && tree.count[0] === 0 ?
          "The recording has no such allocations, or the choices above exclude all of them." :
          "Zoom: click, or arrow keys and Enter. Out: Backspace. Search: /";
      this.path.replaceChildren(element("span", {class: "quiet"}, hint));
      return;
    }
    this.path.replaceChildren(...nodes.flatMap(
        (node, i) =>
            [i > 0 ? " › " : "",
             node === zoom ?
                 element(
                     "span", {"aria-current": "true"},
                     report.text(report.frameName(data, tree.location[node]), 60)) :
                 element(
                     "button", {
                       class: "quiet",
                       onclick: () => report.change({zoom: report.pathOf(tree, node).join(".")})
                     },
                     report.text(report.frameName(data, tree.location[node]), 40)),
    ]));
    this.path.scrollTop = this.path.scrollHeight;  // the zoomed frame is at the end
  },

  drawLegend(data) {
    const {element} = report;
    const named =
        report.parts(data).names.filter((part) => part.hue >= 0).sort((a, b) => a.hue - b.hue);
    this.legend.replaceChildren(
        ...named.map(
            (part) => element(
                "li", {}, element("span", {class: `swatch ground-${part.hue}`}), ` ${part.name}`)),
        element("li", {}, element("span", {class: "swatch ground-other"}), " others"));
  },

  // Describes a frame above the drawing; −1: the zoomed frame.
  describe(data, which) {
    const {element} = report;
    const {tree, zoom} = this.canvas;
    const node = which >= 0 ? which : zoom;
    const location = tree.location[node];
    const about = report.about(data);
    const whole = tree.bytes[0];
    const blocks = report.state.mode.startsWith("window_") ?
        "" :
        ` in ${about}${report.plural(tree.count[node], "block", "blocks")}`;
    const held = `${about}${report.bytes(tree.bytes[node])} (${
        report.share(tree.bytes[node], whole)})${blocks}`;
    const name = report.frameName(data, location);
    const file = location < 0 ? "" : data.strings[data.place_file[location]];
    const line = location >= 0 && report.frameWhere(data, location, report.state).includes(":") ?
        data.place_line[location] :
        0;
    const module = location < 0 ? "" : data.strings[data.place_module[location]];
    const kind = location < 0 ? "" :
                                `${report.kindText(data.place_kind[location])}; part of ${
                                    report.text(report.partOf(data, location))}`;
    const where = [
      file && report.text(file + (line ? `:${line}` : "")),
      module && module !== file ? report.text(module) : ""
    ].filter(Boolean).join("  in ");
    const source = line ? report.locationSource(data, location) : "";
    const parts = [where, source === "" ? null : element("code", {}, source), kind].filter(Boolean);
    this.about.replaceChildren(
        element("p", {}, element("strong", {}, name), `  ${held}`),
        element(
            "p", {class: "quiet"}, parts.flatMap((part, i) => (i > 0 ? ["  ·  ", part] : [part]))));
    this.source?.show(location);
    return `${name}: ${held}. ${where}`;
  },

  tableRows(data) {
    const {tree, zoom, by} = this.canvas;
    const {uncounted} = data.chosen.weights;
    const row = (what, node) =>
        [what,
         report.element(
             "button", {
               class: "quiet",
               onclick: () => report.change({zoom: report.pathOf(tree, node).join(".")})
             },
             `${report.frameName(data, tree.location[node])} ${
                 tree.location[node] < 0 ?
                     "" :
                     report.frameWhere(data, tree.location[node], report.state)}`),
         report.bytes(tree.bytes[node]), uncounted ? "–" : report.count(tree.count[node]),
         report.share(tree[by][node], tree[by][0])];
    const around = [];
    for (let node = zoom; node !== 0; node = tree.parent[node]) around.unshift(tree.parent[node]);
    return [
      ...around.map((node) => row("around", node)),
      row("zoomed", zoom),
      ...tree.children(zoom, by).slice(0, 200).map((node) => row("inside", node)),
    ];
  },

  changed(data, names) {
    if (names.some((name) => !["search", "zoom", "time", "table", "sort", "filter"].includes(name)))
      this.drawBar();
    if (names.includes("zoom"))
      this.bar.querySelector("button").disabled = report.state.zoom === "";
    if (names.includes("search") && this.search.value !== report.state.search)
      this.search.value = report.state.search;
    this.update(data);
    if (names.includes("zoom")) this.canvas.reveal();
  },
  themed() {
    this.canvas?.theme();
    this.canvas?.paint();
  },
};
