// Locations, of which frames are made: their names, the parts that they belong to, which are shown,
// and which match a search.
"use strict";

report.kind = {
  nativeCode: 0,
  python: 1,
  note: 2,
  mask: 3,
  inlined: 4,
  interpreter: 8,
  guessed: 16,
  allocator: 32,
  imports: 64,
  own: 128,
};

report.locationName = (data, location) => {
  const name = report.text(data.strings[data.place_function[location]]);
  if (name !== "") return name;
  const module = report.baseName(data.strings[data.place_module[location]]);
  return module !== "" ? `${report.text(module)} (no name)` : "(unknown)";
};

// The location's file and line, or its module, in short: "train.py:21", "libfoo.so".
report.locationWhere = (data, location) => {
  const file = data.strings[data.place_file[location]];
  const line = data.place_line[location];
  if (file !== "") return report.text(report.baseName(file) + (line !== 0 ? `:${line}` : ""));
  return report.text(report.baseName(data.strings[data.place_module[location]]));
};

report.locationLabel = (data, location) => {
  const where = report.locationWhere(data, location);
  return where === "" ? report.locationName(data, location) :
                        `${report.locationName(data, location)}  ${where}`;
};

// The line of source code; "" if it is not available.
report.locationSource = (data, location) =>
    report.text((data.strings[data.place_source?.[location] ?? 0] ?? "").trim());

// The lines around a location's, [{number, text}]; empty if they are not available.
report.locationExcerpt = (data, location) => {
  const excerpt = data.place_excerpt?.[location] ?? 0;
  if (excerpt === 0) return [];
  const from = excerpt === 1 ? 0 : data.excerpt_end[excerpt - 2];
  const texts = data.excerpt_text.subarray(from, data.excerpt_end[excerpt - 1]);
  return [...texts].map(
      (text, i) => ({number: data.excerpt_first[excerpt - 1] + i, text: data.strings[text] ?? ""}));
};

report.kindText = (kind) => {
  const words = [["native", "Python", "note"][kind & report.kind.mask]];
  if (kind & report.kind.inlined) words.push("inlined");
  if (kind & report.kind.guessed) words.push("guessed");
  if (kind & report.kind.own) words.push("the program's own");
  if (kind & report.kind.interpreter) words.push("interpreter");
  if (kind & report.kind.imports) words.push("import machinery");
  if (kind & report.kind.allocator) words.push("allocator, C library");
  return words.join(", ");
};

// A tree frame's file, with its line unless the frame merges several lines of its function.
report.frameWhere = (data, location, state) => {
  if (state.lines === "lines") return report.locationWhere(data, location);
  if (!data.several) {
    const keys = report.locationKeys(data, "functions");
    data.several = new Uint8Array(data.locations);
    keys.forEach((key, at) => {
      if (key !== at && data.place_line[key] !== data.place_line[at]) data.several[key] = 1;
    });
  }
  return data.several[location] ?
      report.text(report.baseName(data.strings[data.place_file[location]])) :
      report.locationWhere(data, location);
};

// The part that a location belongs to, for its colour: an installed package with its native
// modules, the program itself, Python's library, or else the shared library.
report.partOf = (data, location) => {
  const {kind} = report;
  const flags = data.place_kind[location];
  if ((flags & kind.mask) === kind.note) return "notes of the recorder";
  const file = data.strings[data.place_file[location]];
  const module = data.strings[data.place_module[location]];
  const python = (flags & kind.mask) === kind.python;
  const installed = /\/(?:site|dist)-packages\/([^/]+)/.exec(python ? file : module);
  if (installed)
    return installed[1]
        .replace(/\.libs$|\.py$|\.cpython-.*$|\.abi3\.so$/, "")
        .replace(/^nvidia.*/, "nvidia");
  if (flags & kind.own) return "the program";
  if (python) return "Python's library";
  if (flags & kind.interpreter) return "Python's interpreter";
  // The executable's other code: its startup, and allocators linked into it.
  if (module !== "" && module === data.meta.executable) return "the program";
  return report.baseName(module) || "(unknown)";
};

// For each location the first one of the same function, file or part. Those with the same key are
// counted together.
report.locationKeys = (data, what) => {
  data.keys ??= {};
  if (data.keys[what]) return data.keys[what];
  const text = {
    lines: (location) => `${text.functions(location)} ${data.place_line[location]}`,
    functions: (location) => `${data.place_function[location]} ${data.place_file[location]} ${
                                 data.place_module[location]} ` +
        `${data.place_kind[location] & report.kind.mask} ${
                                 data.place_function[location] === 0 ? location : ""}`,
    file: (location) => data.place_file[location] || `m${data.place_module[location]}`,
    module: (location) => report.partOf(data, location),
  };
  const first = new Map();
  const keys = new Uint32Array(data.locations);
  for (let location = 0; location < data.locations; ++location) {
    const key = text[what](location);
    if (!first.has(key)) first.set(key, location);
    keys[location] = first.get(key);
  }
  data.keys[what] = keys;
  return keys;
};

// 1 for each location that the state shows as a frame; stacks omit the others.
report.shownLocations = (data, state) => {
  const {kind} = report;
  let hidden = 0;
  if (state.interpreter === "") hidden |= kind.interpreter;
  if (state.imports === "") hidden |= kind.imports;
  if (state.allocator === "") hidden |= kind.allocator;
  // Beside Python's lines the program's own native functions count, as in the commands (counts() in
  // tools/recording/analysis/stacks.cpp).
  const isWanted = {
    native: (flags) => (flags & kind.mask) === kind.nativeCode,
    python: (flags) => (flags & kind.mask) === kind.python || (flags & kind.own) !== 0,
  }[state.frames] ??
      (() => true);
  return data.place_kind.map((flags) => {
    if ((flags & kind.mask) === kind.note) return 1;
    if (!isWanted(flags)) return 0;
    // Among native frames the interpreter's are always shown: they are all that leads to the
    // others.
    return flags & (state.frames === "native" ? hidden & ~kind.interpreter : hidden) ? 0 : 1;
  });
};

// The regular expression of a search; null for an empty one. An invalid expression is searched for
// literally.
report.expression = (text) => {
  if (text === "") return null;
  try {
    return new RegExp(text, "i");
  } catch {
    return new RegExp(text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"), "i");
  }
};

// 1 for each location whose function, file or module matches. Names are cut first: matching a name
// of a MiB would freeze the page.
report.matchingLocations = (data, expression) => {
  const ofString = new Int8Array(data.strings.length).fill(-1);
  const test = (index) => {
    if (ofString[index] < 0)
      ofString[index] = expression.test(data.strings[index].slice(0, 1000)) ? 1 : 0;
    return ofString[index];
  };
  const matches = new Uint8Array(data.locations);
  for (let location = 0; location < data.locations; ++location) {
    matches[location] = test(data.place_function[location]) | test(data.place_file[location]) |
        test(data.place_module[location]);
  }
  return matches;
};
