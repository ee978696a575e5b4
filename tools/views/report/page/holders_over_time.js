// The largest holders at each checkpoint, as stacked series. Holders are grouped by the most
// relevant line of their stack, so that a line is one series however it was reached.
"use strict";

// The figures of a checkpoint to draw, as indices of c_row. The last checkpoint names every holder,
// those before only the 256 largest. So only its largest are drawn: the others would seem to have
// appeared in the last moment.
const drawnOf = (data, checkpoint) => {
  const [first, end] = [data.c_first[checkpoint], data.c_first[checkpoint + 1]];
  const all = d3.range(first, end);
  if (checkpoint < data.checkpoints - 1) return all;
  const most =
      checkpoint > 0 && data.c_full[checkpoint - 1] ? first - data.c_first[checkpoint - 1] : 256;
  if (end - first <= most) return all;
  return all.sort((a, b) => data.c_bytes[b] - data.c_bytes[a] || a - b).slice(0, most);
};

// Calls add(row, checkpoint, bytes) for everything to draw. A full checkpoint does not name all
// rows. For an unnamed row it interpolates between the checkpoints that name it, but to no more
// than the smallest row that this one names. A checkpoint that is not full names all rows.
const eachHolder = (data, add) => {
  const smallest = new Float64Array(data.checkpoints).fill(Infinity);
  const named = new Map();  // row -> [checkpoint, bytes]: the last checkpoint that named it
  let open = -1;            // the last checkpoint that was not full
  const fill = (row, [from, had], to, has) => {
    for (let i = from + 1; i < to; ++i) {
      if (!data.c_full[i]) continue;
      const way = (data.c_time[i] - data.c_time[from]) / (data.c_time[to] - data.c_time[from]);
      add(row, i, Math.min(had + way * (has - had), smallest[i]));
    }
  };
  for (let i = 0; i < data.checkpoints; ++i) {
    for (const at of drawnOf(data, i)) {
      const [row, bytes] = [data.c_row[at], data.c_bytes[at]];
      const before = named.get(row) ?? (open >= 0 ? [open, 0] : [i, bytes]);
      fill(row, before, i, bytes);
      add(row, i, bytes);
      smallest[i] = Math.min(smallest[i], bytes);
      named.set(row, [i, bytes]);
    }
    if (data.c_full[i] || i === data.checkpoints - 1) continue;
    open = i;
    for (const [row, before] of named) {
      if (before[0] === i) continue;
      fill(row, before, i, 0);
      named.delete(row);
    }
  }
};

// [{name, values: bytes at each checkpoint}], by their highest value, largest first; the last one
// is all others.
report.holdersOverTime = (data, most) => {
  const of = new Map();  // row -> location
  const locationOf = (row) => {
    if (!of.has(row))
      of.set(row, report.mostRelevant(data, data.row_node[row]) ?? report.noLocation);
    return of.get(row);
  };
  const series = new Map();
  const others = new Float64Array(data.checkpoints);
  for (let i = 0; i < data.checkpoints; ++i) {
    data.spaces.forEach((space, index) => {
      if (space.adds_up) others[i] += data[`c_total_${index}`]?.[i] ?? 0;
    });
  }
  eachHolder(data, (row, checkpoint, bytes) => {
    if (!data.spaces[data.row_space[row]]?.adds_up) return;
    const location = locationOf(row);
    if (!series.has(location)) series.set(location, new Float64Array(data.checkpoints));
    series.get(location)[checkpoint] += bytes;
  });
  const largest = [...series].sort(([, a], [, b]) => d3.max(b) - d3.max(a)).slice(0, most);
  for (const [, values] of largest)
    values.forEach((value, i) => (others[i] = Math.max(0, others[i] - value)));
  return [
    ...largest.map(([location, values]) => ({
                     name: location === report.noLocation ?
                         "(no stack)" :
                         report.locationLabel(data, location).replace("  ", " "),
                     values,
                   })),
    {name: "all others", values: others},
  ];
};

// The series stacked for a chart, the largest at the bottom.
report.stackedSeries = (data, series) => {
  const keys = series.map((_, i) => i);
  const points = d3.range(data.checkpoints).map((i) => series.map(({values}) => values[i]));
  return d3.stack().keys(keys).value((point, key) => point[key])(points).map(
      (layer, index) => ({
        name: series[index].name,
        times: data.c_time,
        lower: Float64Array.from(layer, ([lower]) => lower),
        values: Float64Array.from(layer, ([, upper]) => upper),
        style: index < series.length - 1 ? index : "other",
      }));
};
