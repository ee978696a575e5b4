// The row of choices that flame graph and table share: mode, filters, frames and window.
"use strict";

// The choices of a filter that have rows: [[index, name]…]. A label counts if it or a label nested
// in it has rows.
const filterChoices = (data, column, names) => {
  const used = new Set(data[column]);
  const hasRows = (index) => used.has(Number(index)) ||
      (column === "row_label" && [...report.labelsWithin(data, index)].some((i) => used.has(i)));
  return names.map((name, index) => [String(index), name === "" ? "(none)" : report.text(name, 60)])
      .filter(([index]) => hasRows(index));
};

report.filters = (data) => {
  const processes = data.processes.map(
      (process) =>
          (data.job ? report.rankName(process) :
                      `${process.program ?? ""} ${process.pid ?? ""}`.trim()));
  return [
    ["space", "Space", "row_space", data.spaces.map((space) => space.name), "all that add up"],
    [
      "device", "Device", "row_device", ["(host)", ...data.devices.map((device) => device.device)],
      "all"
    ],
    ["group", "Threads", "row_group", data.groups, "all"],
    ["label", "Label", "row_label", data.labels, "all"],
    ["process", data.job ? "Rank" : "Process", "row_process", processes, "all"],
  ]
      .map(([name, label, column, names,
             all]) => ({name, label, all, choices: filterChoices(data, column, names)}))
      .filter(({choices}) => choices.length > 1);
};

report.windowText = (data, window) => {
  const first = data.t_time?.[0] ?? data.c_time?.[0] ?? window[0];
  return `${report.duration(window[0] - first)} – ${
      report.duration(window[1] - first)} of the recording`;
};

report.drawSelection = (data, section) => {
  const {element, state} = report;
  const window = report.windowOf(state);
  const hint = report.modeHint(data, state.mode);
  section.replaceChildren(
      report.select(
          "Show", report.modeNames(data, state), state.mode, (mode) => report.change({mode})),
      hint ? element("span", {class: "quiet"}, hint) : "",
      ...report.filters(data).map(
          ({name, label, all, choices}) => report.select(
              label, [["", all], ...choices], state[name],
              (value) => report.change({[name]: value}))),
      report.select(
          "Frames", [["both", "native and Python"], ["native", "native"], ["python", "Python"]],
          state.frames, (frames) => report.change({frames})),
      element(
          "fieldset", {class: "choices"}, element("legend", {}, "Also"),
          ...[["interpreter", "interpreter", "functions of the Python interpreter"],
              ["imports", "imports", "Python's import machinery"],
              ["allocator", "allocator", "internals of allocators and of the C library"],
  ].map(([name, label, title]) =>
              report.checkbox(
                  label, state[name] !== "", (on) => report.change({[name]: on ? "1" : ""}),
                  title))),
      window ? element(
                   "span", {class: "window"}, `Window: ${report.windowText(data, window)} `,
                   element("button", {onclick: () => report.setWindow(data, null)}, "Clear")) :
               "",
  );
};

// Sets or clears the window. Setting one selects a mode of the window, clearing it the default.
report.setWindow = (data, window) => {
  const inWindow = report.state.mode.startsWith("window_");
  if (!window)
    return report.change({window: "", mode: inWindow ? report.defaults.mode : report.state.mode});
  const mode = data.checkpoints > 0 && !inWindow ? "window_end" : report.state.mode;
  return report.change({window: `${Math.round(window[0])}-${Math.round(window[1])}`, mode});
};

// The data for the current choices, cached: {weights, nodes, shown, keys}.
report.chosen = (data, state) => {
  const names = [
    "mode", "frames", "lines", "interpreter", "imports", "allocator", "group", "label", "space",
    "device", "process", "window"
  ];
  const key = names.map((name) => state[name]).join("\n");
  if (data.chosen?.key !== key) {
    const weights = report.weights(data, state);
    data.chosen = {
      key,
      weights,
      nodes: report.nodeWeights(data, weights),
      shown: report.shownLocations(data, state),
      keys: report.locationKeys(data, state.lines === "lines" ? "lines" : "functions"),
    };
  }
  return data.chosen;
};

// "about " before figures that are estimates.
report.about = (data) => (data.meta.estimated ? "about " : "");
