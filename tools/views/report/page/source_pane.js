// The source code of a frame, beside the drawing.
"use strict";

// The locations that a frame of the flame graph joins, by line.
report.joinedLocations = (data, location, state) => {
  const keys = report.locationKeys(data, state.lines === "lines" ? "lines" : "functions");
  const joined = [];
  keys.forEach((key, at) => {
    if (key === location) joined.push(at);
  });
  const byLine = new Map(joined.map((at) => [data.place_line[at], at]));
  return [...byLine].sort(([a], [b]) => a - b).map(([, at]) => at);
};

// [{number, text, at}] of a frame of one line: the lines around it, and `at` marks it. Of a frame
// of several: these lines.
const codeOf = (data, locations) => {
  const number = data.place_line[locations[0]];
  if (locations.length === 1)
    return report.locationExcerpt(data, locations[0])
        .map((line) => ({...line, at: line.number === number}));
  return locations
      .map((at) => ({number: data.place_line[at], text: report.locationSource(data, at)}))
      .filter(({text}) => text !== "");
};

// {element, show(location)}, or null if the report has no source code. A location below 0 has none.
report.sourcePane = (data) => {
  const {element} = report;
  if ((data.excerpt_text?.length ?? 0) === 0) return null;
  const pane = element("aside", {class: "code-pane", "aria-label": "Source code of the frame"});
  const show = (location) => {
    const locations = location < 0 ? [] : report.joinedLocations(data, location, report.state);
    const lines = locations.length === 0 ? [] : codeOf(data, locations);
    if (lines.length === 0) {
      const hint = location < 0 ?
          "Source code of the frame under the mouse, or of the zoomed one." :
          "The source code of this frame is not available.";
      pane.replaceChildren(element("p", {class: "quiet"}, hint));
      return;
    }
    const where = locations.length === 1 ?
        report.locationWhere(data, location) :
        `${report.baseName(data.strings[data.place_file[location]])}, the lines of ${
            report.locationName(data, location)}`;
    pane.replaceChildren(
        element("p", {class: "where"}, report.text(where)),
        element(
            "ol", {},
            lines.map(
                ({number, text, at}) => element(
                    "li", {value: number, "aria-current": at ? "true" : null},
                    element("code", {}, report.text(text, 200))))));
  };
  show(-1);
  return {element: pane, show};
};
