// The weight of each row, and so of each stack: by the mode, the filters and the window.
"use strict";

report.modes = {
  live: {
    bytes: (data) => data.row_weight_bytes,
    count: (data) => data.row_live_count,
  },
  peak: {
    bytes: (data) => data.row_peak_bytes,
    count: (data) => data.row_peak_count,
  },
  // Stacks whose blocks were all never freed.
  never_freed: {
    bytes: (data) => data.row_weight_bytes,
    count: (data) => data.row_live_count,
    counts: (data, row) =>
        data.row_live_count[row] > 0 && data.row_live_count[row] >= data.row_total_count[row],
  },
  total: {
    bytes: (data) => data.row_total_bytes,
    count: (data) => data.row_total_count,
  },
  // Freed before the thread's next allocation.
  temporary: {
    bytes: (data) => data.row_temporary_count.map(
        (count, row) =>
            (data.row_total_count[row] > 0 ?
                 (data.row_total_bytes[row] / data.row_total_count[row]) * count :
                 0)),
    count: (data) => data.row_temporary_count,
  },
};

// Why a mode has no data; null if it has.
report.whyNot = (data, mode) => {
  if (mode === "temporary" && data.meta.mode !== "exact") return "needs a recording in exact mode";
  if (mode.startsWith("window_") && data.checkpoints === 0)
    return "the recording has no checkpoints";
  return null;
};

report.modeNames = (data, state) => {
  const end = data.meta.live ? "now" : data.request ? "at the failure" : "at the end";
  const names = [
    ["live", `Held ${end}`],
    ["peak", "Held at peak"],
    ["never_freed", "Never freed"],
    ["total", "All allocations"],
    ["temporary", "Temporary allocations"],
  ];
  if (report.windowOf(state)) {
    names.push(
        ["window_end", "Held when the window ends"], ["window_growth", "Grown in the window"]);
  }
  return names.map(([mode, name]) => [mode, name, report.whyNot(data, mode)]);
};

const modeHints = {
  peak: "live at the peak of its space; spaces may peak at different times",
  never_freed: "stacks that never freed a block",
  total: "everything allocated, freed or not",
  temporary: "freed before the thread's next allocation",
  window_end: "live at the window's last checkpoint",
  window_growth: "between the window's first and last checkpoint; without stacks that shrank",
};

report.modeHint = (data, mode) => mode === "live" && data.meta.weight === "resident" ?
    "what is in memory of it; the table by stack has all that was given" :
    modeHints[mode];

// The chosen label and those nested in it ("epoch 3 / step 12"), as indices; null if none is
// chosen.
report.labelsWithin = (data, label) => {
  if (label === "") return null;
  const outer = data.labels[Number(label)] ?? "";
  const within = new Set([Number(label)]);
  data.labels.forEach((name, index) => {
    if (outer !== "" && name.startsWith(`${outer} / `)) within.add(index);
  });
  return within;
};

// 1 for each row that passes the filters.
report.chosenRows = (data, state) => {
  const chosen = new Uint8Array(data.rows);
  const same = [];
  if (state.group !== "") same.push([data.row_group, Number(state.group)]);
  if (state.process !== "") same.push([data.row_process, Number(state.process)]);
  if (state.device !== "") same.push([data.row_device, Number(state.device)]);
  if (state.space !== "") same.push([data.row_space, Number(state.space)]);
  const labels = report.labelsWithin(data, state.label);
  for (let row = 0; row < data.rows; ++row) {
    // Spaces that lie inside others would be counted twice.
    chosen[row] = state.space !== "" || data.spaces[data.row_space[row]]?.adds_up ? 1 : 0;
    for (const [column, value] of same)
      if (column[row] !== value) chosen[row] = 0;
    if (labels && !labels.has(data.row_label[row])) chosen[row] = 0;
  }
  return chosen;
};

// The last checkpoint at or before a time; -1 if there is none.
report.checkpointAt = (data, ms) => d3.bisectRight(data.c_time, ms) - 1;

const checkpointBytes = (data, checkpoint) => {
  const bytes = new Float64Array(data.rows);
  if (checkpoint < 0) return bytes;
  for (let i = data.c_first[checkpoint]; i < data.c_first[checkpoint + 1]; ++i)
    bytes[data.c_row[i]] = data.c_bytes[i];
  return bytes;
};

const checkpointTotal = (data, checkpoint, state) => {
  let total = 0;
  data.spaces.forEach((space, index) => {
    const wanted = state.space === "" ? space.adds_up : Number(state.space) === index;
    if (wanted && checkpoint >= 0) total += data[`c_total_${index}`]?.[checkpoint] ?? 0;
  });
  return total;
};

// What is in memory of the bytes that a row was given; all of them, if nobody has looked.
report.residentBytes = (data, row) => {
  const bytes = data.row_resident_bytes[row];
  return bytes < 0 ? data.row_live_bytes[row] : bytes;
};

// Whether a mode's bytes are those at the end, which may be resident or not.
report.isOfTheEnd = (mode) => mode === "live" || mode === "never_freed";

// {bytes, count: for each row; others: bytes of stacks that the checkpoint does not name;
// uncounted: whether the counts are unknown}.
report.weights = (data, state) => {
  const chosen = report.chosenRows(data, state);
  const keep = (column) => column.map((value, row) => (chosen[row] ? value : 0));
  const window = report.windowOf(state);
  if (window && state.mode.startsWith("window_")) {
    const growth = state.mode === "window_growth";
    const last = report.checkpointAt(data, window[1]);
    const first = growth ? report.checkpointAt(data, window[0]) : -1;
    const before = checkpointBytes(data, first);
    const bytes =
        keep(checkpointBytes(data, last).map((value, row) => Math.max(0, value - before[row])));
    // A checkpoint does not say whose the unnamed rest is, so it is shown only if no filter but the
    // space is set.
    const whole = !growth && ["", String(data.own_process)].includes(state.process) &&
        [state.group, state.label, state.device].every((value) => value === "");
    const named = bytes.reduce((sum, value) => sum + value, 0);
    return {
      bytes,
      count: new Float64Array(data.rows),
      others: whole ? Math.max(0, checkpointTotal(data, last, state) - named) : 0,
      uncounted: true,
    };
  }
  const mode =
      report.modes[report.whyNot(data, state.mode) ? "live" : state.mode] ?? report.modes.live;
  if (mode.counts) {
    for (let row = 0; row < data.rows; ++row)
      if (!mode.counts(data, row)) chosen[row] = 0;
  }
  return {bytes: keep(mode.bytes(data)), count: keep(mode.count(data)), others: 0};
};

// The rows' figures summed by stack: {bytes, count, others} for each node of the recording's trie.
report.nodeWeights = (data, weights) => {
  const bytes = new Float64Array(data.nodes);
  const count = new Float64Array(data.nodes);
  for (let row = 0; row < data.rows; ++row) {
    bytes[data.row_node[row]] += weights.bytes[row];
    count[data.row_node[row]] += weights.count[row];
  }
  return {bytes, count, others: weights.others};
};
