// The ranks of a job: which of them failed first, the clocks behind their times, and what each held
// over time.
"use strict";

report.rankName = (row) => `rank ${row.rank} (${report.text(row.host ?? "", 40)} ${row.pid})`;

// Shows who held memory in one rank, by its index in job.ranks.
const showRank = (index) => report.change({view: "flame", process: String(index), zoom: ""});

// A rank's outcome: its failure, the other rank whose failure ended it, or how it ended.
const rankStory = (row) => {
  if (row.ended_after_rank !== null)
    return `ended after rank ${row.ended_after_rank}: ${report.text(row.outcome)}`;
  if (row.trouble === null) return report.text(row.outcome);
  const after = row.trouble.seconds_after_first;
  const when = after === 0 ?
      "" :
      `${report.duration(Math.abs(after) * 1000)} ${after < 0 ? "before" : "later"}: `;
  return when + report.text(row.trouble.what, 200);
};

const clockText = ({clock}) => {
  if (clock.aligned_by === "mark")
    return `Times are aligned: the mark “${report.text(clock.mark)}” of each rank is one moment.`;
  return clock.hosts > 1 ? `Times are by the wall clocks of ${clock.hosts} hosts, not aligned.` :
                           "Times are by the host's wall clock.";
};

report.ranksCard = (data) => {
  const {element} = report;
  const {job} = data;
  if (!job || job.ranks.length === 0) return null;
  const head = ["rank", "process", "verdict", "live", "peak", "outcome", ""];
  const rows = job.ranks.map(
      (row, index) =>
          [row.rank === job.first?.rank ? element("strong", {}, `${row.rank} (first)`) :
                                          String(row.rank),
           report.text(`${row.pid} on ${row.host ?? "?"}`, 60),
           element("code", {}, report.text(row.verdict)),
           report.bytes(row.live_bytes),
           report.bytes(row.peak_bytes),
           rankStory(row),
           element("button", {class: "quiet", onclick: () => showRank(index)}, "show it"),
  ]);
  const name = job.job_id === null ? "" : ` of ${report.text(job.job_id, 60)}`;
  return element(
      "section", {class: "card plain", id: "ranks"},
      element(
          "h2", {},
          `${report.plural(job.ranks.length, "rank", "ranks")} of ${job.world_size}${name}`),
      report.simpleTable("Ranks", head, rows), element("p", {class: "quiet"}, clockText(job)),
      job.missing.length > 0 ?
          element(
              "p", {},
              `There is no bundle of rank ${job.missing.slice(0, 32).join(", ")}${
                  job.missing.length > 32 ? " and more" : ""}.`) :
          null,
      job.left_out.length > 0 ?
          element(
              "ul", {},
              job.left_out.map(
                  ({what, why}) => element(
                      "li", {}, `Left out: ${report.text(what, 200)}: ${report.text(why, 300)}`))) :
          null);
};

// At most as many ranks as colours: the chosen one or the first that failed, then the largest.
report.rankSeries = (data) => {
  if (!data.job) return [];
  const first = report.state.process !== "" ? data.job.ranks[Number(report.state.process)]?.rank :
                                              data.job.first?.rank;
  return data.job.ranks.filter((row) => data[`t_rank_${row.rank}`])
      .sort(
          (a, b) => (b.rank === first) - (a.rank === first) || b.peak_bytes - a.peak_bytes ||
              a.rank - b.rank)
      .slice(0, report.hues)
      .map((row, style) => ({
             name: `rank ${row.rank}`,
             values: data[`t_rank_${row.rank}`],
             times: data.t_time,
             style
           }));
};
