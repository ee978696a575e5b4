// Fragmentation: what `oomrec fragmentation` says of heap, mappings and devices.
"use strict";

// Bars of one scale; each says its figure. rows: [name, bytes or null].
report.bars = (rows) => {
  const {element} = report;
  const known = rows.filter(([, bytes]) => bytes !== null && bytes !== undefined);
  const most = d3.max(known, ([, bytes]) => bytes) || 1;
  return element(
      "dl", {class: "bars"},
      known.flatMap(
          ([name, bytes]) =>
              [element("dt", {}, name),
               element(
                   "dd", {},
                   element("span", {class: "amount", style: `width:${(70 * bytes) / most}%`}),
                   ` ${report.bytes(bytes)}`),
  ]));
};

const heapBars = (heap) => {
  const {areas} = heap;
  if (!areas) {
    const why = heap.allocator === "glibc" ?
        "Where the heap lies is not known: it is read from a living process, while a bundle is written." :
        `What ${
            report.text(
                heap.allocator,
                60)} holds is not known: only glibc's memory can be told from other mappings.`;
    return [report.bars([["in live blocks", heap.live_bytes]]), report.sentence(why)];
  }
  return [
    report.bars([
      ["held by the allocator", areas.held_bytes], ["resident of it", areas.resident_bytes],
      ["in live blocks", areas.live_bytes], ["free inside", areas.free_bytes]
    ]),
    report.sentence(`${report.plural(areas.count, "area", "areas")}; ${
        report.factText("free_share", areas.free_share)} of it is free.`)
  ];
};

const freeRuns = (runs) => {
  if (!runs)
    return [
      report.sentence(
          "What lies free between blocks is known of exact recordings only (oomrec run --mode exact).")
    ];
  return [
    report.sentence(`${report.bytes(runs.bytes)} in ${
        report.plural(runs.count, "run", "runs")}; the largest has ${
        report.bytes(runs.largest_bytes)}; ${report.bytes(runs.page_bytes)} are whole pages.`),
    report.bars(runs.sizes.map(
        (size) => [`${report.bytes(size.from)} – ${report.bytes(size.to)}`, size.bytes]))
  ];
};

report.views.fragmentation = {
  title: "Fragmentation",
  draw(data, panel) {
    const {element} = report;
    const known = data.fragmentation;
    const cards = element("div", {class: "cards"});
    panel.append(cards);
    const card = (title, ...content) =>
        cards.append(element("section", {class: "card"}, element("h2", {}, title), ...content));
    if (!known) {
      card(
          "Fragmentation",
          report.sentence("This report does not say how allocators divide what they hold."));
      return;
    }
    if (known.advice) {
      card(
          "What helps",
          known.advice.length === 0 ?
              report.sentence("Nothing notable is held and not used.") :
              element(
                  "ul", {class: "advice"},
                  known.advice.map((one) => element("li", {}, report.text(one.text, 1000)))));
    }
    if (known.heap) {
      card("Heap", ...heapBars(known.heap));
      card("Free between blocks", ...freeRuns(known.heap.free_runs));
    }
    if (known.map) card("Mappings", report.facts(known.map));
    if (known.devices?.length > 0) card("Devices", report.facts(known.devices, ["devices"]));
  },
};
