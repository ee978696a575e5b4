// Starts the page: reads the data, builds header and tabs, and draws the requested view.
"use strict";

const main = {
  at: (id) => document.getElementById(id),

  header(data) {
    const {element} = report;
    const {meta} = data;
    main.at("title").textContent = report.text(meta.title || meta.program || "A recording", 120);
    const when = meta.created_utc ?? meta.start_utc;
    main.at("facts").replaceChildren(
        ...[meta.host ? report.text(meta.host, 60) : null,
            when ? report.bothTimes(when) : null,
            meta.estimated ? "sampled: figures of stacks are estimates" : null,
            meta.redacted ?
                element(
                    "strong", {},
                    "redacted for sharing: without names of host, user and files, arguments and environment") :
                null,
    ].filter(Boolean)
            .map((fact) => element("span", {}, fact)));
    main.switches(data);
  },

  switches(data) {
    const {element, state} = report;
    main.at("switches")
        .replaceChildren(
            report.select(
                "Time", [["utc", "UTC"], ["local", "local"]], state.time,
                (time) => report.change({time})),
            report.select(
                "Theme", [["", "system"], ["light", "light"], ["dark", "dark"]],
                document.documentElement.dataset.theme ?? "", (theme) => {
                  if (theme === "")
                    delete document.documentElement.dataset.theme;
                  else
                    document.documentElement.dataset.theme = theme;
                  main.themed();
                }));
  },

  themed() {
    for (const name of report.order) report.views[name].themed?.();
  },

  tabs() {
    const {element} = report;
    main.at("tabs").replaceChildren(...report.order.map(
        (name) => element(
            "button", {
              role: "tab",
              id: `tab-${name}`,
              "aria-controls": "panel",
              onclick: () => report.change({view: name})
            },
            report.views[name].title)));
    main.at("tabs").addEventListener("keydown", (event) => {
      const step = {ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity}[event.key];
      if (step === undefined) return;
      const at = report.order.indexOf(report.state.view) + step;
      const name = Number.isFinite(step) ?
          report.order[(at + report.order.length) % report.order.length] :
          report.order[step < 0 ? 0 : report.order.length - 1];
      report.change({view: name});
      main.at(`tab-${name}`).focus();
      event.preventDefault();
    });
  },

  show(data) {
    const {state} = report;
    if (!report.views[state.view]) state.view = "overview";
    const view = report.views[state.view];
    const panel = main.at("panel");
    for (const name of report.order) {
      const tab = main.at(`tab-${name}`);
      tab.setAttribute("aria-selected", String(name === state.view));
      tab.tabIndex = name === state.view ? 0 : -1;
    }
    panel.replaceChildren();
    panel.dataset.shows = state.view;
    panel.setAttribute("aria-labelledby", `tab-${state.view}`);
    main.selection(data);
    view.draw(data, panel);
  },

  selection(data) {
    const section = main.at("selection");
    section.hidden = !report.views[report.state.view].selection;
    if (!section.hidden) report.drawSelection(data, section);
  },

  changed(data, names) {
    if (names.includes("time")) main.switches(data);
    if (names.includes("view"))
      main.show(data);
    else {
      if (names.some(
              (name) =>
                  !["search", "zoom", "sort", "filter", "time", "table", "by"].includes(name)))
        main.selection(data);
      report.views[report.state.view].changed?.(data, names);
    }
  },

  keys(event) {
    if (event.key !== "/" || /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) return;
    const search = report.views[report.state.view].search;
    if (!search?.isConnected) return;
    search.focus();
    event.preventDefault();
  },

  async start() {
    const script = main.at("data");
    const data = report.unpack(await report.inflate(script.textContent));
    script.remove();  // frees its text
    report.data = data;
    const view = document.documentElement.dataset.view;
    report.defaults.view = report.order.includes(view) ? view : "overview";
    if (data.meta.moment === "peak") report.defaults.mode = "peak";
    report.defaults.frames = document.documentElement.dataset.frames || "both";
    const label = data.labels.indexOf(document.documentElement.dataset.label);
    if (label > 0) report.defaults.label = String(label);
    if (!data.job && report.filters(data).some(({name}) => name === "process"))
      report.defaults.process = String(data.own_process);
    report.state = report.stateOf(window.location.hash);
    report.views.overview.title = data.verdict ? "What killed it" : "Overview";
    main.header(data);
    main.tabs();
    main.show(data);
    report.onChange((names) => main.changed(data, names));
    window.addEventListener("hashchange", report.readAddress);
    window.addEventListener("popstate", report.readAddress);
    document.addEventListener("keydown", main.keys);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", main.themed);
    main.at("skip").addEventListener("click", (event) => {
      event.preventDefault();
      main.at("panel").focus();
    });
    document.documentElement.dataset.ready = "";
  },
};

report.order = main.at("tabs").dataset.views.split(" ");

main.start().catch((error) => {
  main.at("panel").replaceChildren(report.element(
      "p", {class: "problem"}, `The report cannot be shown: ${error.message}. `,
      "It needs a browser of 2024 or later. For the same figures in a terminal, use oomrec show or oomrec tree."));
  throw error;
});
