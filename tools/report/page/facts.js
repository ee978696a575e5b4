// Any JSON value for people: objects as lists of names and values, lists of objects as tables, and
// figures by the unit that their key ends in. What a command's --json says can so be shown as it is.
"use strict";

report.factName = (key) => report.text(key.replace(/_(bytes|ms|seconds|utc|ns|mb)$/, "").replaceAll("_", " "), 80);

report.factText = (key, value) => {
  if (value === null || value === undefined) return "not known";
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value === "number") {
    if (/bytes_per_second$/.test(key)) return `${report.bytes(value)}/s`;
    if (/(^|_)bytes(_|$)|^size$/.test(key)) return report.bytes(value);
    if (/(^|_)share$|^confidence$|^steadiness$/.test(key)) return report.share(value, 1);
    if (key.endsWith("_mb")) return report.bytes(value * 1048576);
    if (key.endsWith("_ms")) return report.duration(value);
    if (/_(seconds|s)$/.test(key)) return report.duration(value * 1000);
    if (Number.isInteger(value)) return key === "pid" || key === "ppid" || key === "line" ? String(value) : report.count(value);
    return String(Number(value.toPrecision(4)));
  }
  if (/_utc$/.test(key)) return report.bothTimes(value);
  return report.text(value, 4000);
};

const isRecord = (value) => typeof value === "object" && value !== null && !Array.isArray(value);

// FRAMEs of a command's JSON, innermost first, as one text.
report.frameText = (frame) => {
  const where = frame.file ? `${frame.file}${frame.line ? `:${frame.line}` : ""}` : frame.module ?? "";
  return report.text(`${frame.function ?? "(no name)"}  ${where}`);
};

report.facts = (value, key = "") => {
  const { element } = report;
  if (Array.isArray(value)) {
    if (value.length === 0) return element("span", { class: "quiet" }, "none");
    if (value.every((item) => isRecord(item) && ("function" in item) && ("line" in item))) {
      return element("ol", { class: "stack" }, value.map((frame) => element("li", {}, report.frameText(frame))));
    }
    if (value.every(isRecord)) return report.factsTable(value, key);
    if (value.some((item) => typeof item === "object")) return element("ul", {}, value.map((item) => element("li", {}, report.facts(item, key))));
    return element("ul", { class: "words" }, value.map((item) => element("li", {}, report.factText(key, item))));
  }
  if (!isRecord(value)) return element("span", { class: value === null ? "quiet" : null }, report.factText(key, value));
  const names = Object.keys(value);
  if (names.length === 0) return element("span", { class: "quiet" }, "none");
  return element("dl", { class: "facts" }, names.flatMap((name) =>
    [element("dt", {}, report.factName(name)), element("dd", {}, report.facts(value[name], name))]));
};

// A column for each key that a row has; what is no single value is opened on demand.
report.factsTable = (rows, title) => {
  const { element } = report;
  const names = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  const cell = (name, value) => {
    if (typeof value !== "object" || value === null) return report.factText(name, value);
    const count = Array.isArray(value) ? report.count(value.length) : "…";
    const details = element("details", {}, element("summary", {}, count));
    details.addEventListener("toggle", () => {
      if (details.open && details.children.length === 1) details.append(report.facts(value, name));
    });
    return details;
  };
  return report.simpleTable(report.factName(title), names.map(report.factName),
    rows.map((row) => names.map((name) => cell(name, row[name]))));
};
