// The tree from the innermost frame out: the allocating functions, and below them their callers. A
// stack is in it once for each of its frames, so the complete tree would be many times as large as
// the trie. A frame's callers are therefore computed when they are first drawn.
"use strict";

report.InvertedTree = class {
  constructor(data, weights, shown, keys) {
    this.data = data;
    this.keys = keys;
    // The next shown frame outwards; 0 if there is none.
    this.up = new Uint32Array(data.nodes);
    const at = new Uint32Array(data.nodes);  // the node itself, or the next shown one outwards
    for (let node = 1; node < data.nodes; ++node) {
      this.up[node] = at[data.node_parent[node]];
      at[node] = shown[data.node_place[node]] ? node : this.up[node];
    }
    this.location = [report.noLocation];
    this.parent = [0];
    this.bytes = [0];
    this.count = [0];
    this.entries = [{nodes: [], bytes: [], count: []}];  // each frame's nodes of the trie
    this.sorted = new Map();
    this.slot = new Int32Array(data.nodes).fill(-1);
    this.group = new Int32Array(data.locations).fill(-1);
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
      const node = this.add(0, report.othersLocation);
      this.bytes[node] = weights.others;
      this.expanded.get(0).push(node);
    }
  }

  get size() {
    return this.location.length;
  }

  add(parent, location) {
    this.location.push(location);
    this.parent.push(parent);
    this.bytes.push(0);
    this.count.push(0);
    this.entries.push({nodes: [], bytes: [], count: []});
    return this.location.length - 1;
  }

  // Adds to a list of the trie's nodes, each once. Node 0 has no frame left: its figures remain the
  // parent's own.
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

  // Makes the children of `parent`: one for each frame among the entries.
  grouped(parent, list) {
    const children = [];
    list.nodes.forEach((node, i) => {
      const location = this.keys[this.data.node_place[node]];
      if (this.group[location] < 0) {
        this.group[location] = this.add(parent, location);
        children.push(this.group[location]);
      }
      const child = this.group[location];
      this.bytes[child] += list.bytes[i];
      this.count[child] += list.count[i];
      const entries = this.entries[child];
      entries.nodes.push(node);
      entries.bytes.push(list.bytes[i]);
      entries.count.push(list.count[i]);
    });
    for (const child of children) this.group[this.location[child]] = -1;
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
      this.entries[node] = null;  // moved to its callers
      this.expanded.set(node, this.grouped(node, callers));
    }
    list = this.expanded.get(node).slice();
    const value = this[by];
    list.sort((a, b) => value[b] - value[a] || a - b);
    this.sorted.set(key, list);
    return list;
  }
};
