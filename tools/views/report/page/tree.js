// The tree of a flame graph from the outermost frame in: the recording's trie without the places
// that are not shown, what is the same frame merged. Built whole: a parent comes before its
// children.
//
// Not d3.hierarchy: it makes an object and an array of each of 100,000 nodes, anew for each choice
// of the reader; these are a few typed arrays, and children are put in order only where they are
// drawn.
"use strict";

// Finds and numbers pairs of small integers; open addressing, made for so many pairs.
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

// What every frame of the trie holds together with the frames it called.
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
  // weights: nodeWeights(); shown: shownPlaces(); keys: placeKeys().
  constructor(data, weights, shown, keys) {
    const below = report.subtrees(data, weights);
    const of = new Uint32Array(data.nodes);  // a trie's node -> ours
    const numbers = new report.PairNumbers(data.nodes);
    this.place = new Int32Array(data.nodes + 2);
    this.parent = new Uint32Array(data.nodes + 2);
    this.bytes = new Float64Array(data.nodes + 2);
    this.count = new Float64Array(data.nodes + 2);
    this.place[0] = report.noPlace;
    this.bytes[0] = below.bytes[0] + weights.others;
    this.count[0] = below.count[0];
    this.size = 1;
    for (let node = 1; node < data.nodes; ++node) {
      const parent = of[data.node_parent[node]];
      of[node] = parent;
      const place = data.node_place[node];
      if (!shown[place] || (below.bytes[node] === 0 && below.count[node] === 0)) continue;
      const found = numbers.number(parent, keys[place], this.size);
      if (found === this.size) this.add(parent, keys[place]);
      of[node] = found;
      this.bytes[found] += below.bytes[node];
      this.count[found] += below.count[node];
    }
    if (weights.others > 0) {
      this.bytes[this.add(0, report.othersPlace)] = weights.others;
    }
    this.link();
    this.sorted = new Map();
  }

  add(parent, place) {
    this.parent[this.size] = parent;
    this.place[this.size] = place;
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

  // The largest first; by "bytes" or "count".
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

report.noPlace = -1;      // of the root
report.othersPlace = -2;  // of stacks that a checkpoint does not name

report.frameName = (data, place) => {
  if (place === report.noPlace) return "all";
  return place === report.othersPlace ? "[stacks that the checkpoint does not name]" :
                                        report.placeName(data, place);
};

// The places from the outermost in, without the root: what a zoom is remembered by.
report.pathOf = (tree, node) => {
  const places = [];
  for (let at = node; at !== 0; at = tree.parent[at]) places.push(tree.place[at]);
  return places.reverse();
};

// The node at the end of a path, as far as the tree goes along with it.
report.nodeAt = (tree, path, by) => {
  let at = 0;
  for (const place of path) {
    const child = tree.children(at, by).find((candidate) => tree.place[candidate] === place);
    if (child === undefined) break;
    at = child;
  }
  return at;
};

// How much is in stacks that have a matching frame: the same from either end.
report.matchedShare = (data, weights, shown, matches, by) => {
  const inside = new Uint8Array(data.nodes);
  let sum = 0;
  for (let node = 1; node < data.nodes; ++node) {
    const place = data.node_place[node];
    inside[node] = inside[data.node_parent[node]] | (shown[place] & matches[place]);
    if (inside[node]) sum += weights[by][node];
  }
  return sum;
};
