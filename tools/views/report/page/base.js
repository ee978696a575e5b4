// The page's one global, and the only way to add to the document: as elements and text. A program
// may put anything into the names of a recording, so no string is ever parsed as HTML.
"use strict";

const report = {};

// element("button", {class: "quiet", onclick: f}, "text", another): null children are skipped.
report.element = (name, attributes = {}, ...children) => {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on"))
      made.addEventListener(key.slice(2), value);
    else if (key === "value" || key === "checked" || key === "disabled" || key === "hidden")
      made[key] = value;
    else
      made.setAttribute(key, value === true ? "" : value);
  }
  for (const child of children.flat()) {
    if (child !== null && child !== undefined && child !== false) made.append(child);
  }
  return made;
};

// Has a screen reader say the text now.
report.announce = (text) => {
  document.getElementById("announcement").textContent = text;
};

// A drawing's figures as a table that opens on demand: for screen readers, and to copy from.
// `head`: names; `rows`: called when the table opens, because most never do.
report.behind = (title, head, rows) => {
  const {element} = report;
  const details = element("details", {class: "behind"}, element("summary", {}, title));
  details.addEventListener("toggle", () => {
    details.querySelector(".scrolls")?.remove();
    if (details.open) details.append(report.simpleTable(title, head, rows()));
  });
  return details;
};

// Cells are texts, figures, which are aligned right, or elements.
report.simpleTable = (title, head, rows) => {
  const {element} = report;
  const isFigure = (cell) =>
      /^(about )?[−+]?[\d,.]+( ([KMGTPE]iB|bytes|byte|%|s|ms|min|h)(\/s)?)?$|^(unlimited|not known|–)$/
          .test(cell);
  const cell = (value) => element("td", {class: isFigure(value) ? "figure" : null}, value);
  const heading = (name, i) =>
      element("th", {scope: "col", class: isFigure(rows[0]?.[i]) ? "figure" : null}, name);
  return element(
      "div", {class: "scrolls", tabindex: 0, role: "region", "aria-label": title},
      element(
          "table", {}, element("caption", {class: "unseen"}, title),
          element("thead", {}, element("tr", {}, head.map(heading))),
          element("tbody", {}, rows.map((row) => element("tr", {}, row.map(cell))))));
};

report.checkbox = (label, checked, onchange, title) => report.element(
    "label", {class: "choice", title},
    report.element(
        "input", {type: "checkbox", checked, onchange: (event) => onchange(event.target.checked)}),
    label);

// options: [value, text, why it is disabled (null: it is not)].
report.select = (label, options, value, onchange) => {
  const {element} = report;
  const choice = element(
      "select", {"aria-label": label, onchange: (event) => onchange(event.target.value)},
      options.map(
          ([key, text, why]) => element(
              "option", {value: key, disabled: Boolean(why), title: why},
              why ? `${text} (${why})` : text)));
  choice.value = value;
  return element("label", {class: "choice"}, `${label} `, choice);
};
