// The largest holders at each checkpoint, as series that lie on top of each other. Holders are told
// by the line that says most of their stack, so that a line is one series however it was reached.
"use strict";

// Which figures of a checkpoint are drawn, as indices of c_row: all of them. But the last one names
// every holder, those before it the 256 largest; what only it names would seem to have come in its
// last moment.
const drawnOf = (data, checkpoint) => {
  const [first, end] = [data.c_first[checkpoint], data.c_first[checkpoint + 1]];
  const all = d3.range(first, end);
  if (checkpoint < data.checkpoints - 1) return all;
  const most =
      checkpoint > 0 && data.c_full[checkpoint - 1] ? first - data.c_first[checkpoint - 1] : 256;
  if (end - first <= most) return all;
  return all.sort((a, b) => data.c_bytes[b] - data.c_bytes[a] || a - b).slice(0, most);
};

// Calls add(row, checkpoint, bytes) for all that is drawn. What a full checkpoint does not name is
// not known: between two that tell, the row is taken to be on the way from one to the other, and no
// larger than what was named. One that is not full tells of all rows.
const eachHolder = (data, add) => {
  const smallest = new Float64Array(data.checkpoints).fill(Infinity);
  const known = new Map();  // row -> [checkpoint, bytes], the last that named it
  let open = -1;            // the last that was not full
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
      const before = known.get(row) ?? (open >= 0 ? [open, 0] : [i, bytes]);
      fill(row, before, i, bytes);
      add(row, i, bytes);
      smallest[i] = Math.min(smallest[i], bytes);
      known.set(row, [i, bytes]);
    }
    if (data.c_full[i] || i === data.checkpoints - 1) continue;
    open = i;
    for (const [row, before] of known) {
      if (before[0] === i) continue;
      fill(row, before, i, 0);
      known.delete(row);
    }
  }
};

// [{name, values: bytes at each checkpoint}], the largest at any time first; the last is all
// others.
report.holdersOverTime = (data, most) => {
  const of = new Map();  // row -> place
  const placeOf = (row) => {
    if (!of.has(row)) of.set(row, report.telling(data, data.row_node[row]) ?? report.noPlace);
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
    const place = placeOf(row);
    if (!series.has(place)) series.set(place, new Float64Array(data.checkpoints));
    series.get(place)[checkpoint] += bytes;
  });
  const largest = [...series].sort(([, a], [, b]) => d3.max(b) - d3.max(a)).slice(0, most);
  for (const [, values] of largest)
    values.forEach((value, i) => (others[i] = Math.max(0, others[i] - value)));
  return [
    ...largest.map(
        ([place, values]) => ({
          name: place === report.noPlace ? "(no stack)" :
                                           report.placeLabel(data, place).replace("  ", " "),
          values,
        })),
    {name: "all others", values: others},
  ];
};

// As a chart stacks them: the largest at the bottom.
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
