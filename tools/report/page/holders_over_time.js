// The largest holders at each checkpoint, as series that lie on top of each other. Holders are told
// by the line that says most of their stack, so that a line is one series however it was reached.
"use strict";

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
    for (let at = data.c_first[i]; at < data.c_first[i + 1]; ++at) {
      const row = data.c_row[at];
      if (!data.spaces[data.row_space[row]]?.adds_up) continue;
      const place = placeOf(row);
      if (!series.has(place)) series.set(place, new Float64Array(data.checkpoints));
      series.get(place)[i] += data.c_bytes[at];
    }
  }
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
