// Places, which frames are made of: their names, what they belong to, which are shown, which match.
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

report.placeName = (data, place) => {
  const name = report.text(data.strings[data.place_function[place]]);
  if (name !== "") return name;
  const module = report.baseName(data.strings[data.place_module[place]]);
  return module !== "" ? `${report.text(module)} (no name)` : "(unknown)";
};

// "train.py:21" or "libfoo.so": where the place is, in short.
report.placeWhere = (data, place) => {
  const file = data.strings[data.place_file[place]];
  const line = data.place_line[place];
  if (file !== "") return report.text(report.baseName(file) + (line !== 0 ? `:${line}` : ""));
  return report.text(report.baseName(data.strings[data.place_module[place]]));
};

report.placeLabel = (data, place) => {
  const where = report.placeWhere(data, place);
  return where === "" ? report.placeName(data, place) :
                        `${report.placeName(data, place)}  ${where}`;
};

// The line of source code; "" where it is not to be had.
report.placeSource = (data, place) =>
    report.text((data.strings[data.place_source?.[place] ?? 0] ?? "").trim());

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

// Where a frame of a tree is: with its line, unless it stands for several lines of its function.
report.frameWhere = (data, place, state) => {
  if (state.lines === "lines") return report.placeWhere(data, place);
  if (!data.several) {
    const keys = report.placeKeys(data, "functions");
    data.several = new Uint8Array(data.places);
    keys.forEach((key, at) => {
      if (key !== at && data.place_line[key] !== data.place_line[at]) data.several[key] = 1;
    });
  }
  return data.several[place] ? report.text(report.baseName(data.strings[data.place_file[place]])) :
                               report.placeWhere(data, place);
};

// What a place is part of, for its colour: an installed package with its native parts, the program
// itself, Python's library, else the shared library.
report.partOf = (data, place) => {
  const {kind} = report;
  const flags = data.place_kind[place];
  if ((flags & kind.mask) === kind.note) return "notes of the recorder";
  const file = data.strings[data.place_file[place]];
  const module = data.strings[data.place_module[place]];
  const python = (flags & kind.mask) === kind.python;
  const installed = /\/(?:site|dist)-packages\/([^/]+)/.exec(python ? file : module);
  if (installed)
    return installed[1]
        .replace(/\.libs$|\.py$|\.cpython-.*$|\.abi3\.so$/, "")
        .replace(/^nvidia.*/, "nvidia");
  if (flags & kind.own) return "the program";
  if (python) return "Python's library";
  if (flags & kind.interpreter) return "Python's interpreter";
  // What starts it, and its insides of allocators.
  if (module !== "" && module === data.meta.executable) return "the program";
  return report.baseName(module) || "(unknown)";
};

// For each place the first one that is the same function, file or part: what is counted together.
report.placeKeys = (data, what) => {
  data.keys ??= {};
  if (data.keys[what]) return data.keys[what];
  const text = {
    lines: (place) => `${text.functions(place)} ${data.place_line[place]}`,
    functions: (place) =>
        `${data.place_function[place]} ${data.place_file[place]} ${data.place_module[place]} ` +
        `${data.place_kind[place] & report.kind.mask} ${
            data.place_function[place] === 0 ? place : ""}`,
    file: (place) => data.place_file[place] || `m${data.place_module[place]}`,
    module: (place) => report.partOf(data, place),
  };
  const first = new Map();
  const keys = new Uint32Array(data.places);
  for (let place = 0; place < data.places; ++place) {
    const key = text[what](place);
    if (!first.has(key)) first.set(key, place);
    keys[place] = first.get(key);
  }
  data.keys[what] = keys;
  return keys;
};

// 1 for each place that is a frame of its own in this state; the others are left out of stacks.
report.shownPlaces = (data, state) => {
  const {kind} = report;
  let hidden = 0;
  if (state.interpreter === "") hidden |= kind.interpreter;
  if (state.imports === "") hidden |= kind.imports;
  if (state.allocator === "") hidden |= kind.allocator;
  const wanted = {native: kind.nativeCode, python: kind.python}[state.frames];
  return data.place_kind.map((flags) => {
    const what = flags & kind.mask;
    if (what === kind.note) return 1;
    if (wanted !== undefined && what !== wanted) return 0;
    // Who asks for native frames wants the interpreter's, too: nothing else led there.
    return flags & (state.frames === "native" ? hidden & ~kind.interpreter : hidden) ? 0 : 1;
  });
};

// The expression of a search, or null for none; what is no expression is searched for as it stands.
report.expression = (text) => {
  if (text === "") return null;
  try {
    return new RegExp(text, "i");
  } catch {
    return new RegExp(text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"), "i");
  }
};

// 1 for each place whose function, file or module matches. Names are cut first: an expression over
// one of a MiB would stop the page.
report.matchingPlaces = (data, expression) => {
  const ofString = new Int8Array(data.strings.length).fill(-1);
  const test = (index) => {
    if (ofString[index] < 0)
      ofString[index] = expression.test(data.strings[index].slice(0, 1000)) ? 1 : 0;
    return ofString[index];
  };
  const matches = new Uint8Array(data.places);
  for (let place = 0; place < data.places; ++place) {
    matches[place] = test(data.place_function[place]) | test(data.place_file[place]) |
        test(data.place_module[place]);
  }
  return matches;
};
