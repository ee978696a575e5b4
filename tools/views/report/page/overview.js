// The overview: the verdict and its evidence, the request, the limit, the largest holders, and what
// to try.
"use strict";

report.views = {};

// The holders by their bytes at the moment the page opens at, largest first: [{row, bytes, count,
// given, resident, estimated, spaces, devices}]. `row` is the largest of the holder's rows, which
// may be in several spaces and on several devices.
report.topHolders = (data, most) => {
  const mode = report.modes[report.defaults.mode];
  const [all, counts] = [mode.bytes(data), mode.count(data)];
  const numbers = report.holderNumbers(data);
  const holders = new Map();
  let sum = 0;
  for (let row = 0; row < data.rows; ++row) {
    const bytes = all[row];
    if (!data.spaces[data.row_space[row]]?.adds_up || bytes === 0 ||
        (!data.job && data.row_process[row] !== data.own_process))
      continue;
    sum += bytes;
    const key = `${numbers[data.row_node[row]]} ${data.job ? data.row_process[row] : ""}`;
    const holder = holders.get(key) ?? {
      row,
      bytes: 0,
      count: 0,
      given: 0,
      resident: 0,
      estimated: false,
      spaces: new Set(),
      devices: new Set()
    };
    holders.set(key, holder);
    if (bytes > all[holder.row]) holder.row = row;
    holder.bytes += bytes;
    holder.count += counts[row];
    holder.given += data.row_live_bytes[row];
    holder.resident += report.residentBytes(data, row);
    holder.estimated ||= data.row_estimated[row] === 1;
    holder.spaces.add(data.row_space[row]);
    if (data.row_device[row]) holder.devices.add(data.row_device[row]);
  }
  const sorted = [...holders.values()].sort((a, b) => b.bytes - a.bytes || a.row - b.row);
  return {top: sorted.slice(0, most), others: Math.max(sorted.length - most, 0), sum};
};

// Opens the flame graph at a stack.
report.showInFlame = (data, node) => {
  const {mode} = report.defaults;
  const {shown, keys} = report.chosen(data, {...report.state, mode, window: ""});
  const path = report.stackOf(data, node)
                   .filter((location) => shown[location])
                   .reverse()
                   .map((location) => keys[location]);
  report.change({view: "flame", mode, window: "", inverted: "", zoom: path.join(".")});
};

const section = (title, ...content) =>
    report.element("section", {class: "card"}, report.element("h2", {}, title), ...content);

const verdictCard = (data) => {
  const {element} = report;
  const verdict = data.verdict;
  if (!verdict) {
    return element(
        "section", {class: "card verdict"}, element("h2", {}, "Still running"),
        element(
            "p", {class: "summary"},
            "The program is running, and no allocation was refused. This is the memory that it holds."));
  }
  return element(
      "section", {class: `card verdict${verdict.is_memory === false ? " calm" : ""}`},
      element(
          "h2", {}, "What killed it ", element("code", {class: "code"}, report.text(verdict.code))),
      element("p", {class: "summary"}, report.text(verdict.summary, 2000)),
      element(
          "ul", {},
          (verdict.evidence ?? []).map((line) => element("li", {}, report.text(line, 1000)))),
      data.meta.outcome ?
          element(
              "p", {class: "quiet"},
              `Afterwards: ${report.text(data.meta.outcome_sentence || data.meta.outcome)}`) :
          null);
};

const requestCard = (data) => {
  const {element} = report;
  const request = data.request;
  if (!request) return null;
  const thread = request.thread?.name ?
      ` in thread ${request.thread.tid ?? ""} “${report.text(request.thread.name)}”` :
      "";
  const device = request.device ?
      ` on ${report.text(request.device.name ?? request.device.id ?? request.device)}` :
      "";
  return section(
      "The request",
      element(
          "p", {}, element("strong", {}, report.bytes(request.size ?? 0)),
          ` (${report.count(request.size ?? 0)} bytes) from `,
          element("code", {}, report.text(request.api)),
          ` in ${report.text(request.space)}${device}: `,
          element("code", {}, report.text(request.error)), thread),
      request.repeats > 1 ? element(
                                "p", {class: "quiet"},
                                `This stack was refused ${report.count(request.repeats)} times.`) :
                            null,
      report.frameList(request.stack ?? []));
};

const crashCard = (data) => {
  const {crash} = data;
  if (!crash) return null;
  const address = crash.address === null || crash.address === undefined ?
      "" :
      ` at address ${report.text(crash.address)}`;
  return section(
      "The crash",
      report.element("p", {}, report.text(crash.name ?? `signal ${crash.signal}`), address),
      report.frameList(crash.stack ?? []));
};

const childCard = (data) =>
    (data.child ? section("The worker that was killed", report.facts(data.child)) : null);

// Live bytes and the request against the limit, to scale.
const limitCard = (data) => {
  const {element} = report;
  const limit = data.limit;
  if (!limit || !limit.bytes) return null;
  const used = limit.used ?? 0;
  const requested = data.request?.size ?? 0;
  const whole = Math.max(limit.bytes, used + requested);
  const part = (bytes, name) => element(
      "span", {class: `part ${name}`, style: `width:${(100 * Math.min(bytes, whole)) / whole}%`});
  return section(
      "The limit",
      element(
          "p", {}, `${report.text(limit.kind)}: ${report.bytes(used)} of `,
          element("strong", {}, report.bytes(limit.bytes)), " in use",
          requested > 0 ? `, ${report.bytes(requested)} more requested` : ""),
      element(
          "div", {class: "gauge", "aria-hidden": "true"}, part(used, "used"),
          part(requested, "requested"),
          element("span", {class: "end", style: `left:${(100 * limit.bytes) / whole}%`})));
};

// As in `oomrec show`: " resident of 400.0 MiB" after what is resident, ", 8.0 MiB of it resident,"
// after what was given; "" if that is nearly all.
const residentText = (data, {given, resident}) => {
  const worthAWord = 0.05;
  if (!report.isOfTheEnd(report.defaults.mode) || given - resident < worthAWord * given) return "";
  return data.meta.weight === "resident" ? ` resident of ${report.bytes(given)}` :
                                           `, ${report.bytes(resident)} of it resident,`;
};

const holdersCard = (data) => {
  const {element} = report;
  const {top, others, sum} = report.topHolders(data, 8);
  const item = (holder) => {
    const {row, bytes, count, estimated, spaces, devices} = holder;
    const node = data.row_node[row];
    const location = report.mostRelevant(data, node);
    const about = estimated ? "about " : "";
    const where =
        [
          data.job ? `rank ${data.job.ranks[data.row_process[row]]?.rank}` : null,
          ...[...spaces].map((space) => data.spaces[space].name),
          ...[...devices].map((device) => data.devices[device - 1]?.device)
        ].filter(Boolean)
            .map((name) => report.text(name, 60))
            .join(", ");
    const title = location === undefined ? "(no stack)" : report.locationName(data, location);
    const details = element(
        "details", {},
        element(
            "summary", {style: `--share:${(100 * bytes) / sum}%`},
            element("span", {class: "figure"}, about + report.bytes(bytes)), " ",
            element("span", {class: "share-text"}, report.share(bytes, sum)), " ",
            ...(location === undefined ?
                    [title] :
                    report.frameItem(title, report.locationWhere(data, location))),
            element(
                "span", {class: "quiet"},
                `${residentText(data, holder)} in ${about}${
                    report.plural(count, "block", "blocks")}, ${where}`)));
    details.addEventListener("toggle", () => {
      if (!details.open || details.children.length > 1) return;
      details.append(
          report.stackList(data, node),
          element(
              "button", {onclick: () => report.showInFlame(data, node)},
              "Show in the flame graph"));
    });
    return element("li", {}, details);
  };
  return section(
      data.meta.live                  ? "Who holds most" :
          data.meta.moment === "peak" ? "Who held most at the peak" :
                                        "Who held most",
      element("ol", {class: "holders"}, top.map(item)),
      top.length === 0 ? element("p", {class: "quiet"}, "No memory was held.") : null,
      others > 0 ?
          element(
              "p", {class: "quiet"},
              `and ${report.plural(others, "smaller holder", "smaller holders")}: see the table`) :
          null);
};

// A small chart of memory over time, which leads to the timeline.
const curveCard = (data) => {
  if (data.moments < 2) return null;
  const title = "Host memory over time";
  const series = report.hostSeries(data);
  const chart = new report.Chart({
    title,
    height: 150,
    series,
    domain: [data.t_time[0], data.t_time[data.moments - 1]],
    limits: data.limits.filter((limit) => !limit.device),
    read: report.reading(data.t_time, series, report.valueAt),
    onpoint: (ms) => chart.setCursor(ms),
    onbrush: (window) => {
      report.setWindow(data, window);
      report.change({view: "timeline"});
    }
  });
  return report.element(
      "div", {class: "card plain"}, chart.element,
      report.tableBehind(title, series, data.t_time, report.valueAt));
};

const adviceCard = (data) => {
  const {element} = report;
  if (data.advice.length === 0) return null;
  return section(
      "What to try",
      element(
          "ul", {class: "advice"},
          data.advice.map(
              (advice) => element(
                  "li", {}, report.text(advice.text, 1000), " ",
                  advice.row === null || advice.row === undefined ?
                      null :
                      element(
                          "button", {
                            class: "quiet",
                            onclick: () => report.showInFlame(data, data.row_node[advice.row])
                          },
                          "show it")))));
};

const spacesCard = (data) => {
  const used = data.spaces.filter((space) => space.peak_bytes > 0 || space.allocated_count > 0);
  return section(
      "Memory",
      report.simpleTable(
          "Memory by space", ["space", "live", "peak", "allocated", "live blocks", "allocations"],
          used.map(
              (space) =>
                  [report.text(space.name), report.bytes(space.live_bytes),
                   report.bytes(space.peak_bytes), report.bytes(space.allocated_bytes),
                   report.count(space.live_count), report.count(space.allocated_count)])));
};

// In the words of `oomrec show` (tools/sections/resident_memory.cpp).
const residentKinds = {
  heap: "the heap: small blocks, and what glibc keeps free",
  held: "mappings and large blocks that have holders",
  unheld: "anonymous memory without a holder: no hook saw who asked for it",
  stacks: "stacks of threads",
  written_file_pages: "pages of private file mappings that the process has written",
  file_pages: "pages of files, which the kernel takes back when it needs them",
  shared: "shared memory: tmpfs, memfd, System V",
  recorder: "the recorder",
};

// Of what the resident memory consisted at the latest look at the process' pages: an account that
// adds up.
const residentCard = (data) => {
  const account = data.resident_memory;
  if (!account) return null;
  const kinds = Object.entries(residentKinds)
                    .map(([key, name]) => [name, account.kinds[key]])
                    .filter(([, bytes]) => bytes > 0)
                    .sort((a, b) => b[1] - a[1]);
  const when = data.meta.live ?
      "now" :
      account.seconds_before_end < 0.05 ?
      "at the last look" :
      `at the last look, ${report.duration(1000 * account.seconds_before_end)} before the end`;
  const rows = [
    ...kinds,
    [
      `resident${account.complete ? "" : ", as far as there was time to look"}`,
      account.resident_bytes
    ]
  ];
  if (account.swapped_bytes > 0) rows.push(["more in swap", account.swapped_bytes]);
  return section(
      `Resident memory ${when}`,
      report.simpleTable(
          "Resident memory", ["what", "bytes"],
          rows.map(([name, bytes]) => [name, report.bytes(bytes)])));
};

const processCard = (data) => {
  const {meta} = data;
  const known = {
    program: meta.program,
    arguments: (meta.arguments ?? []).join(" "),
    pid: meta.pid,
    host: meta.host,
    user: meta.user,
    started: null,
    written: null,
    because_of: meta.trigger,
    recording: meta.mode === "exact" ? "exact: every event" :
                                       "sampled: figures of blocks below 64 KiB are estimates",
    oomrec: meta.oomrec_version
  };
  if (meta.start_utc) known.started = report.bothTimes(meta.start_utc);
  if (meta.created_utc) known.written = report.bothTimes(meta.created_utc);
  for (const name of Object.keys(known))
    if (known[name] === null || known[name] === undefined || known[name] === "") delete known[name];
  return section("The process", report.facts(known));
};

report.views.overview = {
  title: "What killed it",
  draw(data, panel) {
    const {element} = report;
    panel.append(element(
        "div", {class: "cards"}, verdictCard(data), report.ranksCard(data),
        report.objectsCard(data),
        element("div", {class: "column"}, holdersCard(data), adviceCard(data), curveCard(data)),
        element(
            "div", {class: "column"}, limitCard(data), requestCard(data), crashCard(data),
            childCard(data), spacesCard(data), residentCard(data), processCard(data),
            data.notes.length > 0 ?
                section(
                    "Notes",
                    element(
                        "ul", {},
                        data.notes.map((note) => element("li", {}, report.text(note, 1000))))) :
                null)));
  },
};
