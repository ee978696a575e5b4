// The view of leaks: the results of `oomrec leaks`.
"use strict";

const leakTitle = (leaks) => {
  if (leaks.checkpoints < leaks.checkpoints_needed) {
    return `Too early to tell: ${
        report.plural(
            leaks.checkpoints, "checkpoint",
            "checkpoints")}, but leak detection needs ${report.count(leaks.checkpoints_needed)}.`;
  }
  return leaks.detected ? "Memory grows where it should not." : "No leak was found.";
};

// The most relevant frame: the innermost line of the program's own, else of Python, else a function
// outside the allocator and the C and C++ libraries.
const leakWhere = (stack) => {
  const isOwn = (frame) => frame.kind === "python" &&
      !/\/(site|dist)-packages\/|\/lib\/python3|^<frozen/.test(frame.file ?? "");
  // Not the allocator's, the C or the C++ library's.
  const tells = ({function: name, module}) => name &&
      !/^(void\*? )?(std|__gnu_cxx)::|^operator new/.test(name) &&
      !/^(libc\.so|libc-2|libstdc\+\+|libc\+\+|ld-linux|libjemalloc|libtcmalloc|libmimalloc|liboomrec)/
           .test(report.baseName(module ?? ""));
  const frame = stack.find(isOwn) ?? stack.find((one) => one.kind === "python") ??
      stack.find(tells) ?? stack[0];
  if (!frame) return "(no stack)";
  const where = frame.file ? `${report.baseName(frame.file)}${frame.line ? `:${frame.line}` : ""}` :
                                                                           report.baseName(frame.module ?? "");
  return report.text(`${frame.function ?? "(no name)"} ${where}`, 100);
};

// When the limit will be reached, or would have been if the process has ended.
const limitText = (data) => {
  const {name, bytes, reached_in_seconds: seconds} = data.leaks.limit;
  const limit = `${report.text(name, 60)} of ${report.bytes(bytes)}`;
  if (seconds < 1) return `${limit} is reached.`;
  const time = report.duration(1000 * seconds);
  return data.meta.live ? `At this rate ${limit} is reached in about ${time}.` :
                          `At this rate ${limit} would have been reached about ${time} later.`;
};

const leakRow = (leak) => {
  const about = leak.estimated ? "about " : "";
  const stack = report.element(
      "details", {}, report.element("summary", {}, leakWhere(leak.stack)),
      report.frameList(leak.stack),
      report.sentence(`R² of a straight line through the growth: ${leak.r_squared.toFixed(2)}`));
  return [
    stack, about + report.bytes(leak.growth_bytes), `${report.bytes(leak.bytes_per_second)}/s`,
    about + report.bytes(leak.live_bytes), report.factText("confidence", leak.confidence),
    report.factText("survivor_share", leak.survivor_share),
    report.factText("oldest_seconds", leak.oldest_seconds),
    report.text([leak.space, leak.device].filter(Boolean).join(", "), 60)
  ];
};

report.views.leaks = {
  title: "Leaks",
  draw(data, panel) {
    const {element} = report;
    const {leaks} = data;
    const card = element("div", {class: "card"});
    panel.append(card);
    if (!leaks) {
      card.append(report.sentence(
          "Leaks are stacks that grow from checkpoint to checkpoint. This report was made without searching for them."));
      return;
    }
    card.append(element("p", {class: "summary"}, leakTitle(leaks)));
    if (leaks.detected) {
      card.append(report.facts({
        severity: leaks.severity,
        memory_increase_mb: leaks.memory_increase_mb,
        time_window_seconds: leaks.time_window_seconds
      }));
    }
    if (leaks.limit) {
      card.append(element("p", {}, limitText(data)));
    }
    if (leaks.suggestions?.length > 0) {
      card.append(
          element("h2", {}, "What to try"),
          element(
              "ul", {class: "advice"},
              leaks.suggestions.map((text) => element("li", {}, report.text(text, 1000)))));
    }
    if (leaks.leaks?.length > 0) {
      card.append(
          element("h2", {}, "Stacks that grow"),
          report.simpleTable(
              "Stacks that grow",
              [
                "stack", "growth", "per second", "held", "confidence", "survivors", "oldest block",
                "space"
              ],
              leaks.leaks.map(leakRow)));
    }
    if (leaks.devices?.length > 0)
      card.append(element("h2", {}, "By device"), report.factsTable(leaks.devices, ["devices"]));
    if (leaks.processes?.length > 0)
      card.append(
          element("h2", {}, "By process"), report.factsTable(leaks.processes, ["processes"]));
  },
};
