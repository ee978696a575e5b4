// A stack as a list, innermost first: the program's own lines are highlighted, machinery is folded.
"use strict";

// How much a location says about what its stack does, by the commands' rule (relevance_of() in
// tools/recording/analysis/statistics.cpp): 3 is a line of the program's own, 2 another line of
// Python, 1 a function outside the allocator and the C and C++ libraries.
const relevanceOf = (data, location) => {
  const {kind} = report;
  const flags = data.place_kind[location];
  if ((flags & kind.mask) === kind.python) return flags & kind.own ? 3 : 2;
  const name = data.strings[data.place_function[location]];
  return flags & kind.allocator || name === "" || /\+0x[0-9a-f]+$/.test(name) ? 0 : 1;
};

// The location that represents a stack: the innermost of the most relevant ones; undefined if there
// is no stack.
report.mostRelevant = (data, node) => {
  data.relevance ??=
      Uint8Array.from({length: data.locations}, (_, location) => relevanceOf(data, location));
  let best;
  for (let at = node; at !== 0; at = data.node_parent[at]) {
    const location = data.node_place[at];
    if (best === undefined || data.relevance[location] > data.relevance[best]) best = location;
    if (data.relevance[best] === 3) break;
  }
  return best;
};

// A number for each location's function. A function without a name of its own is its location.
const functionNumbers = (data) => {
  const {kind} = report;
  const numbers = new Map();
  return Int32Array.from({length: data.locations}, (_, location) => {
    const what = data.place_kind[location] & kind.mask;
    const isPython = what === kind.python;
    const name = data.strings[data.place_function[location]];
    if (what === kind.note || name === "" || (isPython && name.endsWith(">"))) return -1 - location;
    const where = (isPython ? data.place_file : data.place_module)[location];
    const key = `${what} ${where} ${data.place_function[location]}`;
    if (!numbers.has(key)) numbers.set(key, numbers.size);
    return numbers.get(key);
  });
};

// inner(number, location): the number of a stack with one more frame, without recursion: if its
// innermost functions are those before them once more, the earlier ones are left out. 0: no frame.
const stacksWithoutRecursion = (data, functions) => {
  const longest = 8;  // a cycle's functions: kLongestCycle in common/session/recursion.h
  const outer = [0], places = [-1], numbers = new Map();
  const child = (number, location) => {
    const key = number * data.locations + location;
    if (!numbers.has(key)) {
      numbers.set(key, outer.push(number) - 1);
      places.push(location);
    }
    return numbers.get(key);
  };
  return (number, location) => {
    const stack = child(number, location);
    const path = [stack];  // the innermost first
    const at = (steps) => {
      while (path.length <= steps) path.push(outer[path[path.length - 1]]);
      return path[steps];
    };
    for (let length = 1; length <= longest && at(2 * length - 1) !== 0; ++length) {
      let step = 0;
      while (step < length && functions[places[at(step)]] === functions[places[at(step + length)]])
        ++step;
      if (step < length) continue;
      return path.slice(0, length).reduceRight(
          (shorter, inner) => child(shorter, places[inner]), at(2 * length));
    }
    return stack;
  };
};

// For each node a number that is the same for stacks that are one holder, by the commands' rule
// (counts() and without_recursion() in tools/recording/analysis/stacks.cpp): of a stack that runs
// Python, its lines outside the import system and the program's own native functions are compared;
// of any other, all frames.
report.holderNumbers = (data) => {
  if (data.holderNumbers) return data.holderNumbers;
  const {kind} = report;
  const inner = stacksWithoutRecursion(data, functionNumbers(data));
  const compared = new Uint32Array(data.nodes);  // 0: no frame of it counts
  const whole = new Uint32Array(data.nodes);     // of stacks without Python
  const runsPython = new Uint8Array(data.nodes);
  const result = new Float64Array(data.nodes);
  for (let node = 1; node < data.nodes; ++node) {
    const [parent, location] = [data.node_parent[node], data.node_place[node]];
    const flags = data.place_kind[location];
    const what = flags & kind.mask;
    const isPython = what === kind.python;
    runsPython[node] = isPython ? 1 : runsPython[parent];
    const counts = what === kind.note || (isPython ? !(flags & kind.imports) : flags & kind.own);
    compared[node] = counts ? inner(compared[parent], location) : compared[parent];
    if (!runsPython[node]) whole[node] = inner(whole[parent], location);
    result[node] = !runsPython[node] ? -whole[node] :
        compared[node] !== 0         ? compared[node] :
                                       -data.nodes - node;
  }
  data.holderNumbers = result;
  return result;
};

// source: the line of code, or "".
report.frameItem = (name, where, source = "") => {
  const {element} = report;
  return [
    element("span", {class: "function", title: name.length > 40 ? name : null}, name), " ",
    element("span", {class: "where"}, where),
    source === "" ? null : element("code", {class: "source"}, source)
  ];
};

report.stackList = (data, node) => {
  const {element, kind} = report;
  return report.foldedList(report.stackOf(data, node).map((location) => {
    const flags = data.place_kind[location];
    if (flags & (kind.interpreter | kind.imports)) return null;
    return element(
        "li", {class: flags & kind.own ? "own" : null},
        report.frameItem(
            report.locationName(data, location), report.locationWhere(data, location),
            report.locationSource(data, location)));
  }));
};

// Frames of a command's JSON. The interpreter's functions outside the first line of Python are
// folded.
report.frameList = (frames) => {
  const {element} = report;
  const line = frames.findIndex((frame) => frame.kind === "python");
  const ofInterpreter = (frame, i) => line >= 0 && i > line && frame.kind === "native" &&
      (/\/(lib)?python3[^/]*$/.test(frame.module ?? "") ||
       /^(__libc_start|_start$)/.test(frame.function ?? ""));
  return report.foldedList(frames.map((frame, i) => {
    if (ofInterpreter(frame, i)) return null;
    const line = frame.line ? `:${frame.line}` : "";
    const module = report.baseName(frame.module ?? "");
    const where = frame.file ? report.baseName(frame.file) + line : module;
    const name = frame.function ??
        (module ? `${module}+0x${Number(frame.offset ?? 0).toString(16)}` : "(unknown)");
    return element(
        "li", {class: frame.kind === "python" ? "own" : null},
        report.frameItem(
            report.text(name), report.text(where), report.text((frame.source ?? "").trim())));
  }));
};

// items: <li>, or null for a frame that is only counted.
report.foldedList = (items) => {
  const {element} = report;
  const list = element("ol", {class: "stack"});
  let folded = 0;
  for (const item of [...items, undefined]) {
    if (item === null) {
      ++folded;
      continue;
    }
    if (folded > 0)
      list.append(element(
          "li", {class: "quiet"},
          `… ${report.plural(folded, "frame", "frames")} of the interpreter`));
    folded = 0;
    if (item) list.append(item);
  }
  return list;
};
