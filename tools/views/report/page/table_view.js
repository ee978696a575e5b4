// Functions, files, packages and stacks with what they hold themselves and with those they called.
"use strict";

report.views.table = {
  title: "Table",
  selection: true,

  draw(data, place) {
    const {element, state} = report;
    this.filter = element("input", {
      type: "search",
      placeholder: "Filter: an expression ( / )",
      "aria-label": "Filter by regular expression",
      value: state.filter,
      oninput: (event) => report.change({filter: event.target.value})
    });
    this.said = element("output", {class: "matched", "aria-live": "polite"});
    this.search = this.filter;
    this.holder = element("div", {class: "fills"});
    place.append(
        element(
            "div", {class: "bar"},
            report.select(
                "By",
                [
                  ["function", "function"], ["line", "line"], ["file", "file"],
                  ["module", "package or library"], ["stack", "stack"]
                ],
                state.table, (table) => report.change({table, sort: ""})),
            this.filter, this.said),
        element(
            "p", {class: "quiet help"},
            "A double click on a row, or arrow keys and Enter, shows it in the flame graph."),
        this.holder);
    this.update(data);
  },

  columns(data) {
    const {state} = report;
    const {weights} = report.chosen(data, state);
    const whole = weights.bytes.reduce((sum, value) => sum + value, weights.others);
    const names = {
      function: [
        ["Function", (entry) => report.placeName(data, entry.place)],
        ["File", (entry) => report.placeFile(data, entry.place, false)]
      ],
      line: [
        ["Function", (entry) => report.placeName(data, entry.place)],
        ["Line", (entry) => report.placeFile(data, entry.place, true)]
      ],
      file: [["File or library", (entry) => report.placeFile(data, entry.place, false)]],
      module: [["Package or library", (entry) => report.text(report.partOf(data, entry.place))]],
      stack: [
        ["Stack", (entry) => this.stackName(data, entry)],
        ["Space", (entry) => report.text(data.spaces[data.row_space[entry.row]].name)]
      ],
    }[state.table] ??
        [];
    const figure = (name, key, title) => {
      const bytes = key.endsWith("bytes");
      return {
        name,
        title,
        figure: true,
        value: (entry) => entry[key],
        text: (entry) => (bytes ? report.bytes(entry[key]) : report.count(entry[key])),
        share: bytes ? (entry) => (whole > 0 ? entry[key] / whole : 0) : null
      };
    };
    const blocks = (name, key) =>
        (weights.uncounted ? {
          name,
          title: "not known: the checkpoints of a window have bytes, but no counts of blocks",
          figure: true,
          value: null,
          text: () => "–"
        } :
                             figure(name, key));
    const own = [
      figure("Own", "own_bytes", "allocated by the frame itself, or by what is not shown below it"),
      blocks("Own blocks", "own_count")
    ];
    const total = [
      figure("Total", "total_bytes", "with all that it called"),
      blocks("Total blocks", "total_count")
    ];
    const columns = names.map(([name, ofEntry], index) => {
      const others = index === 0 ? report.frameName(data, report.othersPlace) : "";
      const full = (entry) => (entry.others ? others : ofEntry(entry));
      return {name, full, text: (entry) => report.shortPath(full(entry)), value: full};
    });
    if (state.table === "stack")
      return [...columns, figure("Bytes", "own_bytes"), blocks("Blocks", "own_count")];
    return [...columns, ...own, ...total];
  },

  stackName(data, entry) {
    const place = report.telling(data, entry.node);
    return place === undefined ? "(no stack)" : report.placeLabel(data, place);
  },

  update(data) {
    const {state} = report;
    const {nodes, weights, shown} = report.chosen(data, state);
    const what = {function: "functions", line: "lines"}[state.table] ?? state.table;
    const all = state.table === "stack" ? report.byStack(data, weights) :
                                          report.byPlace(data, nodes, shown, what);
    const columns = this.columns(data);
    const names = columns.filter((column) => !column.figure);
    const expression = report.expression(state.filter);
    const entries = expression ?
        all.filter((entry) => names.some((column) => expression.test(column.full(entry)))) :
        all;
    const largest = `${columns.findIndex((column) => column.figure)}d`;
    this.table = new report.Table({
      label: `Memory by ${state.table}`,
      columns,
      entries,
      sort: columns[Number.parseInt(state.sort, 10)]?.value ? state.sort : largest,
      onsort: (sort) => report.change({sort}),
      onopen: (entry) => this.open(data, entry),
      openText: "show in the flame graph",
    });
    this.holder.replaceChildren(this.table.element);
    const rows = report.plural(all.length, "row", "rows");
    this.said.textContent = (expression ? `${report.count(entries.length)} of ${rows}` : rows) +
        (data.meta.estimated ? "; figures are estimates" : "");
  },

  open(data, entry) {
    if (entry.others)
      return report.change({view: "flame", search: "", zoom: String(report.othersPlace)});
    if (entry.node !== undefined) return report.showInFlame(data, entry.node);
    const name = data.strings[data.place_function[entry.place]].slice(0, 200);
    const words = {
      file: data.strings[data.place_file[entry.place]] ||
          data.strings[data.place_module[entry.place]],
      module: report.partOf(data, entry.place)
    }[report.state.table] ??
        name;
    return report.change(
        {view: "flame", zoom: "", search: words.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")});
  },

  changed(data, names) {
    if (names.includes("filter") && this.filter.value !== report.state.filter)
      this.filter.value = report.state.filter;
    if (names.every(
            (name) => name === "sort" || name === "zoom" || name === "search" || name === "time" ||
                name === "by"))
      return;
    this.update(data);
  },
};

// What a path adds to an installed package's name, else its last three parts; any other text as it
// is.
report.shortPath = (path) => {
  const installed = path.split(/\/(?:site|dist)-packages\//);
  if (installed.length > 1) return installed[installed.length - 1];
  const parts = path.split("/");
  return path.startsWith("/") && parts.length > 4 ? `…/${parts.slice(-3).join("/")}` : path;
};

report.placeFile = (data, place, withLine) => {
  const file = data.strings[data.place_file[place]];
  const line = withLine && data.place_line[place] ? `:${data.place_line[place]}` : "";
  return report.text((file || data.strings[data.place_module[place]]) + line);
};
