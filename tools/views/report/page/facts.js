// Shows any JSON value, such as a command's --json: objects as lists of names and values, lists of
// objects as tables, and figures in the unit that their key ends in.
"use strict";

report.factName = (key) =>
    report.text(key.replace(/_(bytes|ms|seconds|utc|ns|mb)$/, "").replaceAll("_", " "), 80);

// Whether a figure is in bytes. Some keys of /proc do not say so.
const isBytes = (path) => /(^|_)bytes(_|$)|^size$/.test(path[path.length - 1]) ||
    (path.includes("meminfo") && !/^HugePages/.test(path[path.length - 1])) ||
    path.includes("smaps_rollup") ||
    /^rlimits (as|data|stack|rss|memlock|fsize|core) /.test(path.slice(-3).join(" "));

// path: the keys that led to the value, its own last.
report.factText = (key, value, path = [key]) => {
  if (value === null || value === undefined) return "not known";
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value === "number") {
    if (/bytes_per_second$/.test(key)) return `${report.bytes(value)}/s`;
    if (isBytes(path)) return value >= 2 ** 62 ? "unlimited" : report.bytes(value);
    if (key === "confidence") return report.confidence(value);
    if (/(^|_)share$|^steadiness$/.test(key)) return report.share(value, 1);
    if (key.endsWith("_mb")) return report.bytes(value * 1048576);
    if (key.endsWith("_ms")) return report.duration(value);
    if (/_(seconds|s)$/.test(key)) return report.duration(value * 1000);
    if (Number.isInteger(value))
      return /^(pid|ppid|line|ordinal)$/.test(key) ? String(value) : report.count(value);
    return String(Number(value.toPrecision(4)));
  }
  if (/_utc$/.test(key)) return report.bothTimes(value);
  return report.text(value, 4000);
};

const isRecord = (value) => typeof value === "object" && value !== null && !Array.isArray(value);

// Whether the records have the same keys and only scalar values, like the rows of a table.
const isTable = (values) => values.length > 1 && values.every(isRecord) &&
    values.every(
        (value) => Object.keys(value).join() === Object.keys(values[0]).join() &&
            Object.keys(value).length > 1 &&
            Object.values(value).every((item) => typeof item !== "object" || item === null));

report.facts = (value, path = []) => {
  const {element} = report;
  const key = path[path.length - 1] ?? "";
  if (Array.isArray(value)) {
    if (value.length === 0) return element("span", {class: "quiet"}, "none");
    if (value.every((item) => isRecord(item) && "function" in item && "line" in item))
      return report.frameList(value);
    if (value.every(isRecord)) return report.factsTable(value, path);
    if (value.some((item) => typeof item === "object"))
      return element("ul", {}, value.map((item) => element("li", {}, report.facts(item, path))));
    return element(
        "ul", {class: "words"},
        value.map((item) => element("li", {}, report.factText(key, item, path))));
  }
  if (!isRecord(value))
    return element(
        "span", {class: value === null ? "quiet" : null}, report.factText(key, value, path));
  const names = Object.keys(value);
  if (names.length === 0) return element("span", {class: "quiet"}, "none");
  if (isTable(Object.values(value))) {
    const columns = Object.keys(value[names[0]]);
    return report.simpleTable(
        report.factName(key), ["", ...columns.map(report.factName)],
        names.map(
            (name) =>
                [report.factName(name),
                 ...columns.map(
                     (column) =>
                         report.factText(column, value[name][column], [...path, name, column]))]));
  }
  return element(
      "dl", {class: "facts"},
      names.flatMap(
          (name) =>
              [element("dt", {}, report.factName(name)),
               element("dd", {}, report.facts(value[name], [...path, name]))]));
};

// A table with a column for each key of any row; arrays and objects in it open on demand.
report.factsTable = (rows, path) => {
  const {element} = report;
  const names = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  const cell = (name, value) => {
    if (typeof value !== "object" || value === null)
      return report.factText(name, value, [...path, name]);
    const count = Array.isArray(value) ? report.count(value.length) : "…";
    const details = element("details", {}, element("summary", {}, count));
    details.addEventListener("toggle", () => {
      if (details.open && details.children.length === 1)
        details.append(report.facts(value, [...path, name]));
    });
    return details;
  };
  return report.simpleTable(
      report.factName(path[path.length - 1] ?? ""), names.map(report.factName),
      rows.map((row) => names.map((name) => cell(name, row[name]))));
};
