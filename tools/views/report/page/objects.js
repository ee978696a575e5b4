// The largest living arrays and tensors, as the Python package found them: what each is, who refers
// to it, and the stack that allocated it.
"use strict";

// "history[3] in train.py:12 train, in a reference cycle", as `oomrec show` prints it.
const referrerText = ({name, container, where, is_cycle}) => report.text(name || container, 120) +
    (where ? ` in ${report.text(where, 200)}` : "") + (is_cycle ? ", in a reference cycle" : "");

// The summary is the innermost line of Python; the frames before it are the library's.
const objectStack = (stack) => {
  const {element} = report;
  if (stack.length === 0) return "not known";
  const line = stack.find((line) => line.includes(".py:")) ?? stack[0];
  return element(
      "details", {}, element("summary", {}, report.text(line, 200)),
      element(
          "ol", {class: "stack"}, stack.map((line) => element("li", {}, report.text(line, 300)))));
};

const objectRow = (object) => {
  const {element} = report;
  const {referrers} = object;
  return [
    report.bytes(object.bytes),
    report.text(object.type, 60),
    object.shape.length === 0 ? "scalar" : report.text(object.shape.join("×"), 80),
    report.text(object.dtype, 40),
    report.text(object.device, 40),
    referrers.length === 0 ?
        element("span", {class: "quiet"}, "no referrer found") :
        element(
            "ul", {class: "words"}, referrers.map((one) => element("li", {}, referrerText(one)))),
    objectStack(object.stack),
  ];
};

report.objectsCard = (data) => {
  const {element} = report;
  const {objects: found} = data;
  if (!found || found.objects.length === 0) return null;
  const others = found.count - found.objects.length;
  return element(
      "section", {class: "card plain", id: "objects"},
      element("h2", {}, "Largest arrays and tensors"),
      report.simpleTable(
          "Largest arrays and tensors",
          ["size", "type", "shape", "dtype", "device", "held by", "made at"],
          found.objects.map(objectRow)),
      others > 0 ? element(
                       "p", {class: "quiet"},
                       `${report.count(found.count)} in all hold ${
                           report.bytes(found.total_bytes)}; these are the largest.`) :
                   null,
      found.complete ?
          null :
          element("p", {class: "quiet"}, "The search ran out of time, so some may be missing."));
};
