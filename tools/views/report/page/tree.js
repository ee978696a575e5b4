// The tree of a flame graph, from the outermost frame in: the recording's trie without the hidden
// locations, and with equal frames merged. Built completely; a parent comes before its children.
//
// d3.hierarchy would make an object and an array for each of 100,000 nodes, anew for each choice of
// the reader. This tree is a few typed arrays, and sorts children only where they are drawn.
"use strict";

// Numbers pairs of small integers: a hash table with open addressing, for at most `most` pairs.
report.PairNumbers = class {
  constructor(most) {
    let size = 16;
    while (size < 2 * most) size *= 2;
    this.keys = new Float64Array(size);  // 0: empty
    this.numbers = new Uint32Array(size);
    this.mask = size - 1;
  }

  // The pair's number; `next` if it is a new one.
  number(a, b, next) {
    const key = a * 4294967296 + b + 1;
    let at = (Math.imul(a, 0x9e3779b1) ^ Math.imul(b, 0x85ebca6b)) >>> 0;
    at = (at ^ (at >>> 15)) & this.mask;
    for (; this.keys[at] !== 0; at = (at + 1) & this.mask) {
      if (this.keys[at] === key) return this.numbers[at];
    }
    this.keys[at] = key;
    this.numbers[at] = next;
    return next;
  }
};

// The figures of every node of the trie including its subtree.
report.subtrees = (data, weights) => {
  const bytes = weights.bytes.slice();
  const count = weights.count.slice();
  for (let node = data.nodes - 1; node > 0; --node) {
    bytes[data.node_parent[node]] += bytes[node];
    count[data.node_parent[node]] += count[node];
  }
  return {bytes, count};
};

report.Tree = class {
  // weights: nodeWeights(); shown: shownLocations(); keys: locationKeys().
  constructor(data, weights, shown, keys) {
    const below = report.subtrees(data, weights);
    const of = new Uint32Array(data.nodes);  // node of the trie -> node of this tree
    const numbers = new report.PairNumbers(data.nodes);
    this.location = new Int32Array(data.nodes + 2);
    this.parent = new Uint32Array(data.nodes + 2);
    this.bytes = new Float64Array(data.nodes + 2);
    this.count = new Float64Array(data.nodes + 2);
    this.location[0] = report.noLocation;
    this.bytes[0] = below.bytes[0] + weights.others;
    this.count[0] = below.count[0];
    this.size = 1;
    for (let node = 1; node < data.nodes; ++node) {
      const parent = of[data.node_parent[node]];
      of[node] = parent;
      const location = data.node_place[node];
      if (!shown[location] || (below.bytes[node] === 0 && below.count[node] === 0)) continue;
      const found = numbers.number(parent, keys[location], this.size);
      if (found === this.size) this.add(parent, keys[location]);
      of[node] = found;
      this.bytes[found] += below.bytes[node];
      this.count[found] += below.count[node];
    }
    if (weights.others > 0) {
      this.bytes[this.add(0, report.othersLocation)] = weights.others;
    }
    this.link();
    this.sorted = new Map();
  }

  add(parent, location) {
    this.parent[this.size] = parent;
    this.location[this.size] = location;
    return this.size++;
  }

  link() {
    this.first = new Uint32Array(this.size);  // 0: none
    this.next = new Uint32Array(this.size);
    for (let node = this.size - 1; node > 0; --node) {
      this.next[node] = this.first[this.parent[node]];
      this.first[this.parent[node]] = node;
    }
  }

  // The children, largest first; `by`: "bytes" or "count".
  children(node, by) {
    const key = `${node} ${by}`;
    let list = this.sorted.get(key);
    if (!list) {
      list = [];
      for (let child = this.first[node]; child !== 0; child = this.next[child]) list.push(child);
      if (list.length > 1) {
        const value = this[by];
        list.sort((a, b) => value[b] - value[a] || a - b);
      }
      this.sorted.set(key, list);
    }
    return list;
  }
};

report.noLocation = -1;      // of the root
report.othersLocation = -2;  // of stacks that a checkpoint does not name

report.frameName = (data, location) => {
  if (location === report.noLocation) return "all";
  return location === report.othersLocation ? "[stacks that the checkpoint does not name]" :
                                              report.locationName(data, location);
};

// The locations from the outermost in, without the root: the state's `zoom`.
report.pathOf = (tree, node) => {
  const locations = [];
  for (let at = node; at !== 0; at = tree.parent[at]) locations.push(tree.location[at]);
  return locations.reverse();
};

// The node at the end of a path, or the last one of it that the tree has.
report.nodeAt = (tree, path, by) => {
  let at = 0;
  for (const location of path) {
    const child = tree.children(at, by).find((candidate) => tree.location[candidate] === location);
    if (child === undefined) break;
    at = child;
  }
  return at;
};

// The sum of all stacks with a matching frame. It is the same for the inverted tree.
report.matchedShare = (data, weights, shown, matches, by) => {
  const inside = new Uint8Array(data.nodes);
  let sum = 0;
  for (let node = 1; node < data.nodes; ++node) {
    const location = data.node_place[node];
    inside[node] = inside[data.node_parent[node]] | (shown[location] & matches[location]);
    if (inside[node]) sum += weights[by][node];
  }
  return sum;
};
