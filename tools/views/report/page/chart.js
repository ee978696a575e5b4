// A chart over time: lines or stacked areas, limits as horizontal lines, marks and refusals as
// vertical ones. A window is selected with the mouse, or with Shift and the arrow keys.
"use strict";

// Round values for an axis of bytes: 1, 2 or 5 times a power of ten of bytes, KiB, MiB, ….
report.byteTicks = (most, wanted) => {
  if (!(most > 0)) return [0];
  const unit = 1024 ** Math.floor(Math.log(most / wanted > 1 ? most / wanted : 1) / Math.log(1024));
  const step = unit * d3.tickStep(0, most / unit, wanted);
  return d3.range(0, most + step / 1000, step);
};

report.Chart = class {
  // series: [{name, times, values, lower (of an area), style}]; limits: [{name, bytes}]; events:
  // [{time, text, refused}]; read(ms): the caption for a moment; onbrush(window or null);
  // onpoint(ms or null).
  constructor(options) {
    Object.assign(this, {height: 220, limits: [], events: [], stacked: false}, options);
    const {element} = report;
    this.caption = element("p", {class: "caption"});
    this.drawing =
        d3.create("svg")
            .attr("class", "chart")
            .attr("tabindex", 0)
            .attr("role", "img")
            .attr("height", this.height)
            .attr(
                "aria-label",
                `${this.title}. Left and right arrows read values, with Shift they select a window, Escape clears it.`);
    this.legend = element("ul", {class: "legend"});
    this.element = element(
        "figure", {}, element("figcaption", {}, this.title), this.legend, this.drawing.node(),
        this.caption);
    this.margin = {top: 18, right: 28, bottom: 22, left: 74};
    this.drawing.on("keydown", () => this.key(d3.event))
        .on("mousemove", () => this.point(d3.mouse(this.drawing.node())[0]))
        .on("mouseleave", () => this.onpoint(null));
    this.width = 0;
    new ResizeObserver(() => this.resized()).observe(this.element);
  }

  resized() {
    const width = Math.floor(this.element.clientWidth);
    if (width === this.width || width === 0) return;
    this.width = width;
    this.draw();
  }

  draw() {
    const {margin, width, height} = this;
    const svg = this.drawing.attr("width", width).attr("viewBox", `0 0 ${width} ${height}`);
    svg.selectAll("*").remove();
    const scale = report.state.time === "local" ? d3.scaleTime() : d3.scaleUtc();
    this.x = scale.domain(this.domain).range([margin.left, width - margin.right]).clamp(true);
    const highest = d3.max(this.series, (one) => d3.max(one.values)) || 1;
    // A limit far above would flatten the curves, so only the legend names it.
    const near = this.limits.filter((limit) => limit.bytes <= 2.5 * highest);
    const top = Math.max(highest, d3.max(near, (limit) => limit.bytes) ?? 0) * 1.04;
    this.y = d3.scaleLinear().domain([0, top]).range([height - margin.bottom, margin.top]);
    this.axes(svg, top);
    const lines = svg.append("g");
    for (const one of this.series) this.drawSeries(lines, one);
    if (this.stacked)
      for (const one of this.series) this.drawName(lines, one);
    this.drawLimits(svg, near);
    this.drawEvents(svg);
    this.cursorLine = svg.append("line")
                          .attr("class", "cursor")
                          .attr("y1", margin.top)
                          .attr("y2", height - margin.bottom)
                          .style("display", "none");
    this.brush =
        d3.brushX()
            .extent([[margin.left, margin.top], [width - margin.right, height - margin.bottom]])
            .on("end", () => this.brushed());
    this.brushGroup = svg.append("g").attr("class", "brush").call(this.brush);
    this.drawLegend(near);
    this.setWindow(report.windowOf(report.state));
  }

  axes(svg, top) {
    const {margin, width, height} = this;
    const count = Math.max(2, width / 110);
    svg.append("g")
        .attr("class", "axis time")
        .attr("transform", `translate(0,${height - margin.bottom})`)
        .call(d3.axisBottom(this.x).ticks(count).tickFormat(this.timeFormat(this.x.ticks(count))));
    svg.append("g")
        .attr("class", "axis")
        .attr("transform", `translate(${margin.left},0)`)
        .call(d3.axisLeft(this.y)
                  .tickValues(report.byteTicks(top, 5))
                  .tickFormat((bytes) => report.bytes(bytes).replace(/\.0+ /, " "))
                  .tickSize(-(width - margin.left - margin.right)));
  }

  // As fine as the distance of the labels, so that no two are equal.
  timeFormat(ticks) {
    const [format, day] =
        report.state.time === "local" ? [d3.timeFormat, d3.timeDay] : [d3.utcFormat, d3.utcDay];
    const step = ticks.length > 1 ? ticks[1] - ticks[0] : this.domain[1] - this.domain[0];
    const time = step < 1000 ? "%H:%M:%S.%L" : step < 60_000 ? "%H:%M:%S" : "%H:%M";
    return format(day.count(...this.domain) > 0 ? `%d %b ${time}` : time);
  }

  drawSeries(lines, one) {
    const x = (value, i) => this.x(one.times[i]);
    if (!this.stacked) {
      lines.append("path")
          .attr("class", `line style-${one.style}`)
          .attr(
              "d", d3.line().x(x).y((value) => this.y(value)).curve(d3.curveStepAfter)(one.values));
      return;
    }
    const area = d3.area().x(x).y0((value, i) => this.y(one.lower[i])).y1((value) => this.y(value));
    lines.append("path")
        .attr("class", `area style-${one.style}`)
        .attr("d", area(one.values))
        .append("title")
        .text(one.name);
  }

  // Draws an area's name inside it, at its thickest position where the whole name fits.
  drawName(svg, one) {
    const text = report.text(one.name, 48);
    const half = 3.2 * text.length;
    const within = (i, y) => y - 7 > this.y(one.values[i]) && y + 7 < this.y(one.lower[i]);
    let best = null;
    one.times.forEach((time, i) => {
      const x = this.x(time);
      const y = (this.y(one.lower[i]) + this.y(one.values[i])) / 2;
      if (!within(i, y) || x - half < this.margin.left || x + half > this.width - this.margin.right)
        return;
      const [first, last] =
          [x - half, x + half].map((edge) => d3.bisect(one.times, Number(this.x.invert(edge))));
      for (let at = first - 1; at <= Math.min(last, one.times.length - 1); ++at)
        if (at >= 0 && !within(at, y)) return;
      const thick = this.y(one.lower[i]) - this.y(one.values[i]);
      if (!best || thick > best.thick) best = {x, y, thick};
    });
    if (best)
      svg.append("text")
          .attr("class", "area-name")
          .attr("text-anchor", "middle")
          .attr("x", best.x)
          .attr("y", best.y + 4)
          .text(text);
  }

  drawLimits(svg, near) {
    for (const limit of near) {
      const y = this.y(limit.bytes);
      svg.append("line")
          .attr("class", "limit")
          .attr("x1", this.margin.left)
          .attr("x2", this.width - this.margin.right)
          .attr("y1", y)
          .attr("y2", y);
      svg.append("text")
          .attr("class", "limit-name")
          .attr("x", this.margin.left + 6)
          .attr("y", y - (y < this.margin.top + 14 ? -13 : 4))
          .text(`${report.text(limit.name, 60)} ${report.bytes(limit.bytes)}`);
    }
  }

  drawEvents(svg) {
    const taken = [];  // the names' extents; refusals come first
    for (const event of [...this.events].sort((a, b) => b.refused - a.refused)) {
      const x = this.x(event.time);
      const group = svg.append("g").attr("class", event.refused ? "refusal" : "mark");
      group.append("line")
          .attr("x1", x)
          .attr("x2", x)
          .attr("y1", this.margin.top)
          .attr("y2", this.height - this.margin.bottom);
      group.append("path").attr(
          "d",
          event.refused ? `M${x - 5},${this.margin.top - 9}h10l-5,9z` :
                          `M${x},${this.margin.top - 9}l4,4.5l-4,4.5l-4,-4.5z`);
      group.append("title").text(event.text);
      const end = x > this.width - 150;
      const text = report.text(event.text, 24);
      const wide = 14 + 6.2 * text.length;
      const [from, to] = end ? [x - wide, x] : [x, x + wide];
      if (taken.some(([first, last]) => from < last && to > first)) continue;
      taken.push([from, to]);
      group.append("text")
          .attr("x", x + (end ? -8 : 8))
          .attr("y", this.margin.top - 4)
          .attr("text-anchor", end ? "end" : "start")
          .text(text);
    }
  }

  drawLegend(near) {
    const {element} = report;
    this.legend.replaceChildren(
        ...this.series.map((one) => {
          const sample =
              d3.create("svg").attr("width", 26).attr("height", 10).attr("aria-hidden", "true");
          if (this.stacked)
            sample.append("rect")
                .attr("class", `area style-${one.style}`)
                .attr("width", 26)
                .attr("height", 10);
          else
            sample.append("path").attr("class", `line style-${one.style}`).attr("d", "M0,5H26");
          return element("li", {}, sample.node(), ` ${report.text(one.name, 80)}`);
        }),
        ...this.limits.filter((limit) => !near.includes(limit))
            .map(
                (limit) => element(
                    "li", {class: "quiet"},
                    `limit ${report.text(limit.name, 60)} ${
                        report.bytes(limit.bytes)}: above the picture`)));
  }

  setWindow(window) {
    if (!this.brush) return;
    this.moving = true;
    this.brushGroup.call(this.brush.move, window ? window.map(this.x) : null);
    this.moving = false;
  }

  brushed() {
    if (this.moving) return;
    const chosen = d3.event.selection;
    this.onbrush(chosen ? chosen.map((x) => Number(this.x.invert(x))) : null);
  }

  point(x) {
    if (this.x && x >= this.margin.left) this.onpoint(Number(this.x.invert(x)));
  }

  setCursor(ms) {
    this.cursor = ms;
    this.caption.textContent = ms === null ? "" : this.read(ms);
    this.cursorLine?.style("display", ms === null ? "none" : null);
    if (ms !== null && this.x) this.cursorLine.attr("x1", this.x(ms)).attr("x2", this.x(ms));
  }

  key(event) {
    const step = {ArrowLeft: -1, ArrowRight: 1}[event.key];
    if (event.key === "Escape") this.onbrush(null);
    if (step === undefined) return;
    event.preventDefault();
    const times = this.series[0].times;
    const last = times.length - 1;
    // At most 200 steps lead across.
    const stride = Math.max(1, Math.floor(last / 200));
    const at = this.cursor === null || this.cursor === undefined ?
        last :
        Math.max(0, d3.bisectRight(times, this.cursor) - 1);
    const next = times[Math.max(0, Math.min(last, at + step * stride))];
    if (event.shiftKey) {
      this.anchor ??= times[at];
      if (next !== this.anchor)
        this.onbrush([Math.min(next, this.anchor), Math.max(next, this.anchor)]);
    } else {
      this.anchor = null;
    }
    this.onpoint(next);
    report.announce(this.read(next));
  }
};
