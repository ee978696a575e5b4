// The views that show JSON as it is: processes and environment.
"use strict";

report.sentence = (text) => report.element("p", {class: "quiet"}, text);

// A view of one card, which its choices do not change.
report.plainView = (title, draw) => ({
  title,
  draw(data, panel) {
    const place = report.element("div", {class: "card"});
    panel.append(place);
    draw(data, place);
  },
});

report.views.processes = report.plainView("Processes", (data, place) => {
  const {element} = report;
  if (data.processes.length === 0) {
    place.append(report.sentence("No other process of the program was recorded."));
    return;
  }
  place.append(
      element("h2", {}, "Recorded processes"), report.factsTable(data.processes, ["processes"]));
  if (data.others?.length) {
    place.append(
        element("h2", {}, "Other processes of the memory cgroup"),
        report.factsTable(data.others, ["others"]));
  }
});

report.views.environment = report.plainView("Environment", (data, place) => {
  const {element} = report;
  if (data.meta.redacted)
    place.append(report.sentence("Left out for sharing: this report was made with --redact."));
  const known =
      data.environment && Object.keys(data.environment).length > 0 ? data.environment : null;
  if (!known && !data.meta.redacted)
    place.append(report.sentence(
        "The recording has no environment: it was taken from a session, not from a bundle."));
  if (known) {
    const {schema_version: _, ...facts} = known;
    place.append(report.facts(facts));
  }
  if (data.modules.length > 0) {
    const columns = ["path", "build id"];
    place.append(report.behind(
        `${report.plural(data.modules.length, "module", "modules")}`, columns,
        () => data.modules.map(
            (module) => [report.text(module.path), report.text(module.build_id)])));
  }
  place.append(
      element("p", {class: "quiet"}, `Made by oomrec ${report.text(data.meta.oomrec_version)}.`));
});
