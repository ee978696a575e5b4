// Memory over time: the host's, each device's, and who held it. A window selected in one chart
// applies to all views.
"use strict";

report.hostSeries = (data) => {
  const used =
      data.spaces.map((space, index) => ({name: space.name, values: data[`t_live_${index}`]}))
          .filter(
              ({name, values}) =>
                  values && !/^(cuda|hip)(_va)?$|^torch$/.test(name) && d3.max(values) > 0);
  return [{name: "resident (RSS)", values: data.t_rss}, ...used].map(
      (one, index) => ({...one, times: data.t_time, style: index % report.hues}));
};

const deviceSeries =
    (data,
     index) => [["used by all", data[`t_device_${index}_used`]],
                ["held by this process", data[`t_device_${index}_counted`]],
                ["of it reserved by PyTorch", data[`t_device_${index}_torch_reserved`]],
                ["and in tensors", data[`t_device_${index}_torch_allocated`]],
].filter(([, values]) => values && d3.max(values) > 0)
                   .map(([name, values], style) => ({name, values, times: data.t_time, style}));

const deviceLimits = (data, device) =>
    [...data.limits.filter((limit) => limit.device === device.device),
     ...(device.total_bytes ? [{name: "all of it", bytes: device.total_bytes}] : []),
];

const timeEvents =
    (data) => [...data.refusals.map((refusal) => ({
                                      time: refusal.time_ms,
                                      refused: true,
                                      text: `${report.bytes(refusal.bytes)} refused${
                                          refusal.api ? ` (${report.text(refusal.api)})` : ""}`
                                    })),
               ...data.marks.map(
                   (mark) => ({time: mark.time_ms, text: report.text(mark.text), refused: false})),
].sort((a, b) => a.time - b.time);

// The caption for the last sample at or before `ms`.
report.reading = (times, series, text) => (ms) => {
  const at = Math.max(0, d3.bisectRight(times, ms) - 1);
  const figures =
      series.map((one) => `${report.text(one.name, 60)} ${report.bytes(text(one, at))}`);
  return `${report.bothClocks(times[at])}: ${figures.join(", ")}`;
};

report.valueAt = (one, i) => one.values[i];

report.tableBehind = (title, series, times, value) => report.behind(
    `${title} as a table`, ["time (UTC)", ...series.map((one) => report.text(one.name, 60))],
    () => {
      // At most about 500 rows: more would not be readable.
      const stride = Math.max(1, Math.ceil(times.length / 500));
      return d3.range(0, times.length)
          .filter((i) => i % stride === 0 || i === times.length - 1)
          .map((i) => [report.utc(times[i]), ...series.map((one) => report.bytes(value(one, i)))]);
    });

report.views.timeline = {
  title: "Timeline",
  draw(data, panel) {
    const {element} = report;
    if (data.moments < 2) {
      panel.append(element(
          "p", {class: "quiet"},
          "There is no timeline: the program ended before the recorder's second sample. It samples at most ten times a second."));
      return;
    }
    this.charts = [];
    const domain = [data.t_time[0], data.t_time[data.moments - 1]];
    const add = (title, series, times, options, value = report.valueAt) => {
      const chart = new report.Chart({
        title,
        series,
        domain,
        read: report.reading(times, series, value),
        ...options,
        onbrush: (window) => report.setWindow(data, window),
        onpoint: (ms) => this.charts.forEach((other) => other.setCursor(ms))
      });
      this.charts.push(chart);
      panel.append(chart.element, report.tableBehind(title, series, times, value));
    };
    const events = timeEvents(data);
    panel.append(element("div", {class: "bar", id: "window-bar"}));
    add("Host memory", report.hostSeries(data), data.t_time,
        {limits: data.limits.filter((limit) => !limit.device), events});
    const ranks = report.rankSeries(data);
    if (ranks.length > 0) add("Memory of each rank", ranks, data.t_time, {events});
    data.devices.forEach((device, index) => {
      const series = deviceSeries(data, index);
      if (series.length > 0) {
        add(`Device ${report.text(device.device)} ${report.text(device.name)}`, series, data.t_time,
            {height: 150, limits: deviceLimits(data, device), events});
      }
    });
    if (data.checkpoints >= 2) {
      const series = report.stackedSeries(data, report.holdersOverTime(data, report.hues));
      add("Holders over time", series, data.c_time, {stacked: true, height: 280},
          (one, i) => one.values[i] - one.lower[i]);
    } else {
      panel.append(element(
          "p", {class: "quiet"},
          "There are no holders over time: the recording has fewer than two checkpoints."));
    }
    if (events.length > 0) {
      panel.append(report.behind(
          `${report.plural(events.length, "refusal or mark", "refusals and marks")}`,
          ["time (UTC)", "what", "text"],
          () => events.map(
              (event) =>
                  [report.utc(event.time), event.refused ? "refusal" : "mark", event.text])));
    }
    this.drawWindow(data);
  },
  drawWindow(data) {
    const {element} = report;
    const window = report.windowOf(report.state);
    document.getElementById("window-bar")
        ?.replaceChildren(...(
            window ?
                [
                  element("strong", {}, `Window: ${report.windowText(data, window)} `),
                  element(
                      "button", {onclick: () => report.change({view: "flame"})},
                      "Show in the flame graph"),
                  element(
                      "button", {onclick: () => report.change({view: "table"})},
                      "Show in the table"),
                  element("button", {onclick: () => report.setWindow(data, null)}, "Clear"),
                ] :
                [
                  element(
                      "span", {class: "quiet"},
                      "Point at a chart, or use the arrow keys, to read its values. Drag, or hold Shift with the arrow keys, to select a window. The other views then show who held memory in it.")
                ]));
  },
  changed(data, names) {
    if (names.includes("window")) {
      for (const chart of this.charts ?? []) chart.setWindow(report.windowOf(report.state));
      if (this.charts) this.drawWindow(data);
    }
    if (names.includes("time"))
      for (const chart of this.charts ?? []) chart.draw();
  },
};
