// The views that show JSON unchanged: processes and environment.
"use strict";

report.sentence = (text) => report.element("p", {class: "quiet"}, text);

// A view of one card that does not depend on the reader's choices.
report.plainView = (title, draw) => ({
  title,
  draw(data, panel) {
    const card = report.element("div", {class: "card"});
    panel.append(card);
    draw(data, card);
  },
});

report.views.processes = report.plainView("Processes", (data, card) => {
  const {element} = report;
  if (data.processes.length === 0) {
    card.append(report.sentence("No other process of the program was recorded."));
    return;
  }
  card.append(
      element("h2", {}, "Recorded processes"), report.factsTable(data.processes, ["processes"]));
  if (data.others?.length) {
    card.append(
        element("h2", {}, "Other processes of the memory cgroup"),
        report.factsTable(data.others, ["others"]));
  }
});

report.views.environment = report.plainView("Environment", (data, card) => {
  const {element} = report;
  if (data.meta.redacted)
    card.append(report.sentence("Omitted for sharing: this report was made with --redact."));
  const known =
      data.environment && Object.keys(data.environment).length > 0 ? data.environment : null;
  if (!known && !data.meta.redacted)
    card.append(report.sentence(
        "There is no environment: this report was made from a session, not from a bundle."));
  if (known) {
    const {schema_version: _, ...facts} = known;
    card.append(report.facts(facts));
  }
  if (data.modules.length > 0) {
    const columns = ["path", "build id"];
    card.append(report.behind(
        `${report.plural(data.modules.length, "module", "modules")}`, columns,
        () => data.modules.map(
            (module) => [report.text(module.path), report.text(module.build_id)])));
  }
  card.append(
      element("p", {class: "quiet"}, `Made by oomrec ${report.text(data.meta.oomrec_version)}.`));
});
