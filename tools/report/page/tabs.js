// The views that show what a command's --json says as it is: leaks, fragmentation, processes, environment.
"use strict";

const sentence = (text) => report.element("p", { class: "quiet" }, text);

const plainView = (title, draw) => ({
  title,
  draw(data, panel) {
    const place = report.element("div", { class: "card" });
    panel.append(place);
    draw(data, place);
  },
});

report.views.leaks = plainView("Leaks", (data, place) => {
  const { element } = report;
  if (!data.leaks) {
    place.append(sentence("Leaks are stacks that grow from checkpoint to checkpoint. This recording has too few checkpoints to tell; a longer run has more."));
    return;
  }
  const { schema_version: _, suggestions, ...known } = data.leaks;
  place.append(
    element("p", { class: "summary" }, known.detected ? "Memory grows where it should not." : "No leak was found."),
    suggestions?.length ? element("ul", { class: "advice" }, suggestions.map((text) => element("li", {}, report.text(text, 1000)))) : "",
    report.facts(known));
});

report.views.fragmentation = plainView("Fragmentation", (data, place) => {
  if (!data.fragmentation) {
    place.append(sentence("The recording does not say how allocators divide what they hold. For a running program or a newer bundle: oomrec fragmentation."));
    return;
  }
  const { schema_version: _, ...known } = data.fragmentation;
  place.append(report.facts(known));
});

report.views.processes = plainView("Processes", (data, place) => {
  const { element } = report;
  if (data.processes.length === 0) {
    place.append(sentence("No other process of the program was recorded."));
    return;
  }
  place.append(element("h2", {}, "Recorded processes"), report.factsTable(data.processes, "processes"));
  if (data.others?.length) {
    place.append(element("h2", {}, "Other processes of the memory cgroup"), report.factsTable(data.others, "others"));
  }
});

report.views.environment = plainView("Environment", (data, place) => {
  const { element } = report;
  if (data.meta.redacted) place.append(sentence("Left out for sharing: this report was made with --redact."));
  const known = data.environment && Object.keys(data.environment).length > 0 ? data.environment : null;
  if (!known && !data.meta.redacted) place.append(sentence("The recording has no environment: it was taken from a session, not from a bundle."));
  if (known) place.append(report.facts(known));
  if (data.modules.length > 0) {
    const columns = ["path", "build id"];
    place.append(report.behind(`${report.plural(data.modules.length, "module", "modules")}`, columns,
      () => data.modules.map((module) => [report.text(module.path), report.text(module.build_id)])));
  }
  place.append(element("p", { class: "quiet" }, `Made by oomrec ${report.text(data.meta.oomrec_version)}.`));
});
