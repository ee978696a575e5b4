// The tree from the innermost frame out: who allocated, below it who called. A stack is in it once
// for each of its frames, so that the whole would be many times as large as the trie: a frame's
// callers are worked out when they are drawn first.
"use strict";

report.InvertedTree = class {
  constructor(data, weights, shown, keys) {
    this.data = data;
    this.keys = keys;
    // The next shown frame outwards; 0: none.
    this.up = new Uint32Array(data.nodes);
    const at = new Uint32Array(data.nodes);  // the node itself, or the next outwards that is shown
    for (let node = 1; node < data.nodes; ++node) {
      this.up[node] = at[data.node_parent[node]];
      at[node] = shown[data.node_place[node]] ? node : this.up[node];
    }
    this.place = [report.noPlace];
    this.parent = [0];
    this.bytes = [0];
    this.count = [0];
    this.entries = [{nodes: [], bytes: [], count: []}];  // where in the trie a frame is
    this.sorted = new Map();
    this.slot = new Int32Array(data.nodes).fill(-1);
    this.group = new Int32Array(data.places).fill(-1);
    const root = this.entries[0];
    for (let node = 0; node < data.nodes; ++node) {
      if (weights.bytes[node] === 0 && weights.count[node] === 0) continue;
      this.bytes[0] += weights.bytes[node];
      this.count[0] += weights.count[node];
      this.enter(root, at[node], weights.bytes[node], weights.count[node]);
    }
    this.leave(root);
    this.expanded = new Map([[0, this.grouped(0, root)]]);
    if (weights.others > 0) {
      this.bytes[0] += weights.others;
      const node = this.add(0, report.othersPlace);
      this.bytes[node] = weights.others;
      this.expanded.get(0).push(node);
    }
  }

  get size() {
    return this.place.length;
  }

  add(parent, place) {
    this.place.push(place);
    this.parent.push(parent);
    this.bytes.push(0);
    this.count.push(0);
    this.entries.push({nodes: [], bytes: [], count: []});
    return this.place.length - 1;
  }

  // Adds to a list of trie nodes, each once; what has no frame left is the parent's own.
  enter(list, node, bytes, count) {
    if (node === 0) return;
    if (this.slot[node] < 0) {
      this.slot[node] = list.nodes.length;
      list.nodes.push(node);
      list.bytes.push(0);
      list.count.push(0);
    }
    list.bytes[this.slot[node]] += bytes;
    list.count[this.slot[node]] += count;
  }

  leave(list) {
    for (const node of list.nodes) this.slot[node] = -1;
  }

  // Children of `parent`: one for each frame that the entries are at.
  grouped(parent, list) {
    const children = [];
    list.nodes.forEach((node, i) => {
      const place = this.keys[this.data.node_place[node]];
      if (this.group[place] < 0) {
        this.group[place] = this.add(parent, place);
        children.push(this.group[place]);
      }
      const child = this.group[place];
      this.bytes[child] += list.bytes[i];
      this.count[child] += list.count[i];
      const entries = this.entries[child];
      entries.nodes.push(node);
      entries.bytes.push(list.bytes[i]);
      entries.count.push(list.count[i]);
    });
    for (const child of children) this.group[this.place[child]] = -1;
    return children;
  }

  children(node, by) {
    const key = `${node} ${by}`;
    let list = this.sorted.get(key);
    if (list) return list;
    if (!this.expanded.has(node)) {
      const callers = {nodes: [], bytes: [], count: []};
      const {nodes, bytes, count} = this.entries[node];
      nodes.forEach((at, i) => this.enter(callers, this.up[at], bytes[i], count[i]));
      this.leave(callers);
      this.entries[node] = null;  // its callers have them now
      this.expanded.set(node, this.grouped(node, callers));
    }
    list = this.expanded.get(node).slice();
    const value = this[by];
    list.sort((a, b) => value[b] - value[a] || a - b);
    this.sorted.set(key, list);
    return list;
  }
};
