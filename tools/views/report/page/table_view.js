// The table's view: functions, lines, files, packages and stacks, with their own and total memory.
"use strict";

report.views.table = {
  title: "Table",
  selection: true,

  draw(data, panel) {
    const {element, state} = report;
    this.filter = element("input", {
      type: "search",
      placeholder: "Filter: regular expression ( / )",
      "aria-label": "Filter by regular expression",
      value: state.filter,
      oninput: (event) => report.change({filter: event.target.value})
    });
    this.summary = element("output", {class: "matched", "aria-live": "polite"});
    this.search = this.filter;
    this.container = element("div", {class: "fills"});
    panel.append(
        element(
            "div", {class: "bar"},
            report.select(
                "By",
                [
                  ["function", "function"], ["line", "line"], ["file", "file"],
                  ["module", "package or library"], ["stack", "stack"]
                ],
                state.table, (table) => report.change({table, sort: ""})),
            this.filter, this.summary),
        element(
            "p", {class: "quiet help"},
            "A double click on a row, or arrow keys and Enter, shows it in the flame graph."),
        this.container);
    this.update(data);
  },

  columns(data) {
    const {state} = report;
    const {weights} = report.chosen(data, state);
    const whole = weights.bytes.reduce((sum, value) => sum + value, weights.others);
    const names = {
      function: [
        ["Function", (entry) => report.locationName(data, entry.location)],
        ["File", (entry) => report.locationFile(data, entry.location, false)]
      ],
      line: [
        ["Function", (entry) => report.locationName(data, entry.location)],
        ["Line", (entry) => report.locationFile(data, entry.location, true)]
      ],
      file: [["File or library", (entry) => report.locationFile(data, entry.location, false)]],
      module: [["Package or library", (entry) => report.text(report.partOf(data, entry.location))]],
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
          title: "not known: checkpoints have bytes, but no counts of blocks",
          figure: true,
          value: null,
          text: () => "–"
        } :
                             figure(name, key));
    const own = [
      figure(
          "Own", "own_bytes", "allocated by the frame itself, or by hidden frames that it called"),
      blocks("Own blocks", "own_count")
    ];
    const total = [
      figure("Total", "total_bytes", "including all frames that it called"),
      blocks("Total blocks", "total_count")
    ];
    const columns = names.map(([name, ofEntry], index) => {
      const others = index === 0 ? report.frameName(data, report.othersLocation) : "";
      const full = (entry) => (entry.others ? others : ofEntry(entry));
      return {name, full, text: (entry) => report.shortPath(full(entry)), value: full};
    });
    if (state.table === "stack") {
      const bytes = figure("Bytes", "own_bytes");
      return [
        ...columns, ...(this.hasResident(data) ? this.residentColumns(data, figure) : [bytes]),
        blocks("Blocks", "own_count")
      ];
    }
    return [...columns, ...own, ...total];
  },

  // Whether what is in memory differs from what was given, at the moment that is shown.
  hasResident: (data) => report.isOfTheEnd(report.state.mode) &&
      data.row_resident_bytes.some(
          (bytes, row) => bytes >= 0 && bytes !== data.row_live_bytes[row]),

  // The one by which holders are ranked first.
  residentColumns(data, figure) {
    const given = figure("Bytes", "live_bytes", "what its blocks take up, touched or not");
    const resident = figure("Resident", "resident_bytes", "what of them is in memory or in swap");
    return data.meta.weight === "resident" ? [resident, given] : [given, resident];
  },

  stackName(data, entry) {
    const location = report.mostRelevant(data, entry.node);
    return location === undefined ? "(no stack)" : report.locationLabel(data, location);
  },

  update(data) {
    const {state} = report;
    const {nodes, weights, shown} = report.chosen(data, state);
    const what = {function: "functions", line: "lines"}[state.table] ?? state.table;
    const all = state.table === "stack" ? report.byStack(data, weights) :
                                          report.byLocation(data, nodes, shown, what);
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
    this.container.replaceChildren(this.table.element);
    const rows = report.plural(all.length, "row", "rows");
    this.summary.textContent = (expression ? `${report.count(entries.length)} of ${rows}` : rows) +
        (data.meta.estimated ? "; figures are estimates" : "");
  },

  open(data, entry) {
    if (entry.others)
      return report.change({view: "flame", search: "", zoom: String(report.othersLocation)});
    if (entry.node !== undefined) return report.showInFlame(data, entry.node);
    const name = data.strings[data.place_function[entry.location]].slice(0, 200);
    const words = {
      file: data.strings[data.place_file[entry.location]] ||
          data.strings[data.place_module[entry.location]],
      module: report.partOf(data, entry.location)
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

// A path inside site-packages, or a long path's last three parts; any other text unchanged.
report.shortPath = (path) => {
  const installed = path.split(/\/(?:site|dist)-packages\//);
  if (installed.length > 1) return installed[installed.length - 1];
  const parts = path.split("/");
  return path.startsWith("/") && parts.length > 4 ? `…/${parts.slice(-3).join("/")}` : path;
};

report.locationFile = (data, location, withLine) => {
  const file = data.strings[data.place_file[location]];
  const line = withLine && data.place_line[location] ? `:${data.place_line[location]}` : "";
  return report.text((file || data.strings[data.place_module[location]]) + line);
};
