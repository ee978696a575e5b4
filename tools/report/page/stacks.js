// A stack as a list, innermost first: the program's own lines stand out, machinery is folded away.
"use strict";

// The place that says most of a stack: the program's own innermost line, else the innermost that is shown.
report.telling = (data, node) => {
  const { kind } = report;
  const machinery = kind.interpreter | kind.imports | kind.allocator;
  let second; // best
  for (let at = node; at !== 0; at = data.node_parent[at]) {
    const place = data.node_place[at];
    if (data.place_kind[place] & kind.own) return place;
    if (second === undefined && !(data.place_kind[place] & machinery)) second = place;
  }
  return second ?? (node !== 0 ? data.node_place[node] : undefined);
};

report.stackList = (data, node) => {
  const { element, kind } = report;
  const places = report.stackOf(data, node);
  const machinery = kind.interpreter | kind.imports;
  const items = [];
  let folded = 0;
  const unfold = () => {
    if (folded > 0) items.push(element("li", { class: "quiet" }, `… ${report.plural(folded, "frame", "frames")} of the interpreter`));
    folded = 0;
  };
  for (const place of places) {
    if (data.place_kind[place] & machinery) {
      ++folded;
      continue;
    }
    unfold();
    const own = data.place_kind[place] & kind.own;
    items.push(element("li", { class: own ? "own" : null }, report.frameItem(report.placeName(data, place), report.placeWhere(data, place))));
  }
  unfold();
  return element("ol", { class: "stack" }, items);
};

report.frameItem = (name, where) =>
  [report.element("span", { class: "function" }, name), " ", report.element("span", { class: "where" }, where)];

// FRAMEs of the bundle's JSON.
report.frameList = (frames) => report.element("ol", { class: "stack" }, frames.map((frame) => {
  const where = frame.file ? `${report.baseName(frame.file)}${frame.line ? `:${frame.line}` : ""}` : report.baseName(frame.module ?? "");
  const name = frame.function ?? (frame.module ? `${report.baseName(frame.module)}+0x${Number(frame.offset ?? 0).toString(16)}` : "(unknown)");
  return report.element("li", { class: frame.kind === "python" ? "own" : null },
    report.frameItem(report.text(name), report.text(where)));
}));
