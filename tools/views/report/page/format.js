// Figures, times and names for people. Bytes are printed in KiB, MiB, … with one decimal, as the
// commands do. Times are in ms since 1970.
"use strict";

report.bytes = (bytes) => {
  const sign = bytes < 0 ? "−" : "";
  let value = Math.abs(bytes);
  if (value < 1024) return `${sign}${Math.round(value)} bytes`;
  value /= 1024;
  let unit = 0;
  // 1023.95 would be 1024.0 of the smaller unit.
  while (value >= 1023.95 && unit < 5) {
    value /= 1024;
    ++unit;
  }
  return `${sign}${value.toFixed(1)} ${["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"][unit]}`;
};

report.count = (count) => Math.round(count).toLocaleString("en-US");

report.share = (part, whole) => (whole > 0 ? `${((100 * part) / whole).toFixed(1)} %` : "0.0 %");

// The words of `oomrec leaks`.
report.confidence = (value) => `${
    value >= 0.8     ? "high" :
        value >= 0.5 ? "medium" :
                       "low"} (${value.toFixed(2)})`;

report.plural = (count, one, several) =>
    `${report.count(count)} ${Math.round(count) === 1 ? one : several}`;

// "2026-11-21 10:15:30.123 UTC", to compare with logs. `local` is the reader's own time zone.
report.utc = (ms) => `${new Date(ms).toISOString().replace("T", " ").slice(0, 23)} UTC`;

report.local = (ms) => {
  const at = new Date(ms);
  const two = (value) => String(value).padStart(2, "0");
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ` +
      `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())} local`;
};

// Both times; only one if the reader's time zone is UTC.
report.bothClocks = (ms) => new Date(ms).getTimezoneOffset() === 0 ?
    report.utc(ms) :
    `${report.utc(ms)} (${report.local(ms)})`;

report.bothTimes = (text) => {
  const ms = Date.parse(text);
  return Number.isNaN(ms) ? report.text(text) : report.bothClocks(ms).replace(".000", "");
};

report.duration = (ms) => {
  const s = ms / 1000;
  if (s < 1) return `${Math.round(ms)} ms`;
  if (s < 120) return `${s.toFixed(1)} s`;
  return s < 7200 ? `${(s / 60).toFixed(1)} min` : `${(s / 3600).toFixed(1)} h`;
};

// The name of a program, file or function, safe to show: control and bidirectional characters
// become visible codes, and a very long name is cut.
report.text = (value, most = 300) => {
  const text = String(value ?? "");
  const cut = text.length > most ? `${text.slice(0, most)}…` : text;
  return cut.replace(
      /[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]/g,
      (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`);
};

report.baseName = (path) => path.slice(path.lastIndexOf("/") + 1);
