// Own and total memory of functions, files, modules and stacks. A recursive function counts once in
// a stack's total.
"use strict";

// For each node of the trie: whether a shown frame with the same key is further out in its stack.
report.repeats = (data, shown, keys) => {
  const first = new Uint32Array(data.nodes);
  const next = new Uint32Array(data.nodes);
  for (let node = data.nodes - 1; node > 0; --node) {
    next[node] = first[data.node_parent[node]];
    first[data.node_parent[node]] = node;
  }
  const open =
      new Uint32Array(data.locations);  // the number of a key's shown frames on the current path
  const repeated = new Uint8Array(data.nodes);
  // Depth first: to the first child, else to the next sibling of the node or of an ancestor.
  for (let node = first[0]; node !== 0;) {
    const location = data.node_place[node];
    repeated[node] = open[keys[location]] > 0 ? 1 : 0;
    open[keys[location]] += shown[location];
    if (first[node] !== 0) {
      node = first[node];
      continue;
    }
    while (node !== 0) {
      open[keys[data.node_place[node]]] -= shown[data.node_place[node]];
      if (next[node] !== 0) break;
      node = data.node_parent[node];
    }
    node = next[node];
  }
  return repeated;
};

// An entry for the stacks that a checkpoint does not name, so that the table adds up.
const othersEntry = ({others: bytes}) =>
    (bytes > 0 ?
         [{others: true, own_bytes: bytes, own_count: 0, total_bytes: bytes, total_count: 0}] :
         []);

// [{location, own_bytes, own_count, total_bytes, total_count}] for all keys with memory.
report.byLocation = (data, weights, shown, what) => {
  const keys = report.locationKeys(data, what);
  const repeated = report.repeats(data, shown, keys);
  const below = report.subtrees(data, weights);
  const found = new Map();
  const of = (location) => {
    const key = keys[location];
    let entry = found.get(key);
    if (!entry) {
      entry = {location: key, own_bytes: 0, own_count: 0, total_bytes: 0, total_count: 0};
      found.set(key, entry);
    }
    return entry;
  };
  const owner = new Uint32Array(data.nodes);  // the innermost shown frame
  for (let node = 1; node < data.nodes; ++node) {
    const location = data.node_place[node];
    owner[node] = shown[location] ? node : owner[data.node_parent[node]];
    if (shown[location] && !repeated[node] && (below.bytes[node] > 0 || below.count[node] > 0)) {
      const entry = of(location);
      entry.total_bytes += below.bytes[node];
      entry.total_count += below.count[node];
    }
    if (owner[node] !== 0 && (weights.bytes[node] > 0 || weights.count[node] > 0)) {
      const entry = of(data.node_place[owner[node]]);
      entry.own_bytes += weights.bytes[node];
      entry.own_count += weights.count[node];
    }
  }
  return [...found.values(), ...othersEntry(weights)];
};

// [{node, row, live_bytes, resident_bytes, own_…, total_…}], one for each holder; own and total are
// equal.
report.byStack = (data, weights) => {
  const entries = [];
  for (let row = 0; row < data.rows; ++row) {
    const bytes = weights.bytes[row];
    const count = weights.count[row];
    if (bytes === 0 && count === 0) continue;
    entries.push({
      row,
      node: data.row_node[row],
      live_bytes: data.row_live_bytes[row],
      resident_bytes: report.residentBytes(data, row),
      own_bytes: bytes,
      own_count: count,
      total_bytes: bytes,
      total_count: count
    });
  }
  return [...entries, ...othersEntry(weights)];
};
