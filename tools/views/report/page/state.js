// The reader's choices. Those that differ from the defaults are in the address after the #, so that
// a view can be sent, bookmarked and returned to.
"use strict";

report.defaults = {
  view: "overview",
  mode:
      "live",  // live, peak, never_freed, total, temporary; window_end, window_growth with a window
  by: "bytes",         // bytes, count
  frames: "both",      // both, native, python
  lines: "functions",  // functions, lines: which locations share a frame
  inverted: "",
  interpreter: "",  // "1": shown
  imports: "",
  allocator: "",
  group: "",  // indices; "": all
  label: "",
  space: "",
  device: "",
  process: "",
  search: "",
  zoom: "",           // locations from the outermost in, separated by dots
  window: "",         // from-to in ms since 1970
  table: "function",  // function, file, module, stack
  sort: "",
  filter: "",
  time: "utc",
};

report.state = {...report.defaults};
report.listeners = [];

// listener(names): called after a change, with the names of the changed choices.
report.onChange = (listener) => report.listeners.push(listener);

report.change = (changes) => {
  const names = Object.keys(changes).filter((name) => report.state[name] !== changes[name]);
  if (names.length === 0) return;
  Object.assign(report.state, changes);
  const steps = names.includes("view") || names.includes("zoom");  // "back" undoes these
  // A page embedded in another, such as a notebook, has no address of its own.
  if (window.location.protocol !== "about:")
    window.history[steps ? "pushState" : "replaceState"](null, "", report.addressOf(report.state));
  for (const listener of report.listeners) listener(names);
};

report.addressOf = (state) => {
  const words = new URLSearchParams();
  for (const [name, value] of Object.entries(state)) {
    if (value !== report.defaults[name] || name === "view") words.set(name, value);
  }
  return `#${words}`;
};

report.stateOf = (address) => {
  const words = new URLSearchParams(address.replace(/^#/, ""));
  const state = {...report.defaults};
  for (const name of Object.keys(state)) {
    if (words.has(name)) state[name] = words.get(name);
  }
  return state;
};

// Applies the address: after a step back, or when the reader edited it.
report.readAddress = () => {
  const next = report.stateOf(window.location.hash);
  const names = Object.keys(next).filter((name) => report.state[name] !== next[name]);
  report.state = next;
  if (names.length > 0)
    for (const listener of report.listeners) listener(names);
};

// The window as [from, to] in ms, or null.
report.windowOf = (state) => {
  const [from, to] = state.window.split("-").map(Number);
  return state.window !== "" && from < to ? [from, to] : null;
};
