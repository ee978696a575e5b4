// The view of fragmentation: the results of `oomrec fragmentation` for heap, mappings and devices.
"use strict";

// Bars of one scale, with their figures. rows: [name, bytes or null].
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

// Why the heap has more live bytes than its areas.
const besides = ({live_bytes, areas}) => live_bytes > areas.live_bytes ?
    ` Beside them, large blocks of ${
        report.bytes(live_bytes - areas.live_bytes)} in all have mappings of their own.` :
    "";

const heapBars = (heap) => {
  const {areas} = heap;
  if (!areas) {
    const why = heap.allocator === "glibc" ?
        "The heap's areas are not known: oomrec reads them from a living process, when it writes a bundle." :
        `The memory that ${
            report.text(
                heap.allocator,
                60)} holds is not known: only glibc's heap can be distinguished from other mappings.`;
    return [report.bars([["in live blocks", heap.live_bytes]]), report.sentence(why)];
  }
  return [
    report.bars([
      ["held by the allocator", areas.held_bytes], ["resident of it", areas.resident_bytes],
      ["in live blocks", areas.live_bytes], ["free inside", areas.free_bytes],
      ["resident of the free", areas.free_resident_bytes]
    ]),
    report.sentence(`${report.plural(areas.count, "area", "areas")}; ${
        report.factText("free_share", areas.free_share)} of it is free.${besides(heap)}`)
  ];
};

const freeRuns = (runs) => {
  if (!runs)
    return [report.sentence(
        "Only an exact recording shows the free memory between blocks (oomrec run --mode exact).")];
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
      card("Fragmentation", report.sentence("This report was made without fragmentation figures."));
      return;
    }
    if (known.advice) {
      card(
          "What helps",
          known.advice.length === 0 ?
              report.sentence("No notable amount of memory is held without being used.") :
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
