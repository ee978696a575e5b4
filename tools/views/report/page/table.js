// A table of any length, with only its visible rows in the document. It is a real <table>, sorted
// by buttons in its headings and navigated with the arrow keys.
"use strict";

report.Table = class {
  // columns: [{name, title, text(entry), full(entry): the text unshortened, value(entry): to sort
  // by (null: not sortable), figure: aligned right, share(entry): 0 to 1, for a bar}]; sort: "3d",
  // a column's index and d(own) or u(p); onsort(sort); onopen(entry).
  constructor({label, columns, entries, sort, onsort, onopen, openText}) {
    Object.assign(this, {label, columns, entries, sort, onsort, onopen, openText});
    this.rowHeight = 26;  // px, as page.css has it
    this.at = -1;
    this.build();
    this.order();
  }

  build() {
    const {element} = report;
    this.heads = this.columns.map(
        (column, index) => element(
            "th", {scope: "col", class: column.figure ? "figure" : null, title: column.title},
            column.value ?
                element("button", {class: "sort", onclick: () => this.sortBy(index)}, column.name) :
                column.name));
    this.body = element("tbody");
    this.table = element(
        "table", {"aria-label": this.label},
        element("thead", {}, element("tr", {"aria-rowindex": 1}, this.heads)), this.body);
    this.element = element(
        "div", {
          class: "virtual",
          tabindex: 0,
          role: "region",
          "aria-label": `${this.label}. Arrow keys move between rows${
              this.openText ? `, Enter: ${this.openText}` : ""}.`,
          onscroll: () => this.draw(),
          onkeydown: (event) => this.key(event),
        },
        this.table);
    new ResizeObserver(() => this.draw()).observe(this.element);
  }

  sortBy(index) {
    const down = this.columns[index].figure;
    const [column, direction] = [Number.parseInt(this.sort, 10), this.sort.slice(-1)];
    const next = column === index ? (direction === "d" ? "u" : "d") : down ? "d" : "u";
    this.sort = `${index}${next}`;
    this.at = -1;
    this.order();
    this.onsort?.(this.sort);
    report.announce(`sorted by ${this.columns[index].name}, ${
        next === "d" ? "largest first" : "smallest first"}`);
  }

  order() {
    const index = Number.parseInt(this.sort, 10);
    const column = this.columns[index] ?? this.columns[0];
    const sign = this.sort.endsWith("d") ? -1 : 1;
    // Compute the values first, so that each of 100,000 names is made only once.
    this.sorted = this.entries.map((entry) => [column.value(entry), entry])
                      .sort(
                          ([a], [b]) => sign *
                              (a < b     ? -1 :
                                   a > b ? 1 :
                                           0))
                      .map(([, entry]) => entry);
    this.heads.forEach((head, i) => {
      if (this.columns[i].value)
        head.setAttribute(
            "aria-sort",
            i !== index  ? "none" :
                sign < 0 ? "descending" :
                           "ascending");
    });
    this.table.setAttribute("aria-rowcount", this.sorted.length + 1);
    this.element.scrollTop = 0;
    this.draw();
  }

  draw() {
    const {element} = report;
    const above = Math.max(0, Math.floor(this.element.scrollTop / this.rowHeight) - 4);
    const first = Math.min(above, Math.max(0, this.sorted.length - 1));
    const last = Math.min(
        this.sorted.length,
        first + Math.ceil((this.element.clientHeight || 600) / this.rowHeight) + 8);
    const gap = (rows) => element(
        "tr", {class: "gap", "aria-hidden": "true", style: `height:${rows * this.rowHeight}px`});
    const rows = [];
    for (let i = first; i < last; ++i) rows.push(this.row(i));
    this.body.replaceChildren(gap(first), ...rows, gap(this.sorted.length - last));
  }

  row(index) {
    const {element} = report;
    const entry = this.sorted[index];
    const cells = this.columns.map((column) => {
      const text = column.text(entry);
      const bar = column.share ? {style: `--share:${(100 * column.share(entry)).toFixed(2)}%`} : {};
      return element(
          "td", {
            class: `${column.figure ? "figure" : ""}${column.share ? " share" : ""}`,
            title: column.full?.(entry),
            ...bar
          },
          text);
    });
    return element(
        "tr", {
          "aria-rowindex": index + 2,
          class: index === this.at ? "at" : null,
          onclick: () => this.go(index),
          ondblclick: () => this.onopen?.(entry),
        },
        cells);
  }

  go(index) {
    this.at = Math.max(0, Math.min(this.sorted.length - 1, index));
    const top = this.at * this.rowHeight;
    const visible = this.element.clientHeight - 3 * this.rowHeight;
    if (top < this.element.scrollTop) this.element.scrollTop = top;
    if (top > this.element.scrollTop + visible) this.element.scrollTop = top - visible;
    this.draw();
    const entry = this.sorted[this.at];
    if (entry)
      report.announce(
          this.columns.map((column) => `${column.name}: ${column.text(entry)}`).join(", "));
  }

  key(event) {
    if (event.target !== this.element) return;
    const page = Math.max(1, Math.floor(this.element.clientHeight / this.rowHeight) - 3);
    const steps =
        {ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity};
    if (event.key in steps)
      this.go((this.at < 0 && steps[event.key] < 0 ? 0 : this.at) + steps[event.key]);
    else if (event.key === "Enter" && this.at >= 0)
      this.onopen?.(this.sorted[this.at]);
    else
      return;
    event.preventDefault();
  }
};
