// Draws the flame graph from the top down, on a canvas of the size of its visible part. It visits
// only frames at least a pixel wide, level by level, so a redraw costs only as much as is visible.
"use strict";

report.FlameCanvas = class {
  constructor(data) {
    this.data = data;
    this.rowHeight = 20;  // px
    this.font = "12px ui-monospace, 'DejaVu Sans Mono', monospace";
    this.boldFont = `bold ${this.font}`;  // for the program's own frames
    const {element} = report;
    this.canvas = element("canvas", {});
    this.spacer = element("div", {class: "spacer"}, this.canvas);
    this.element = element(
        "div", {
          class: "flame",
          tabindex: 0,
          role: "application",
          "aria-roledescription": "flame graph",
          "aria-label":
              "Flame graph. Arrow keys move between frames, Enter zooms in, Backspace zooms out, Home shows all, / searches.",
          onscroll: () => this.paint()
        },
        this.spacer);
    this.zoom = 0;
    this.at = -1;    // the frame at the keyboard's cursor
    this.over = -1;  // the frame under the mouse
    this.theme();
    new ResizeObserver(() => this.resized()).observe(this.element);
  }

  theme() {
    this.palette = report.palette();
    this.hueOf = report.parts(this.data).hueOf;
  }

  resized() {
    const {clientWidth, clientHeight} = this.element;
    if (clientWidth === this.width && clientHeight === this.height) return;
    const first = !this.width;
    this.width = clientWidth;
    this.height = clientHeight;
    if (!this.tree) return;
    this.show();
    if (first) this.reveal();
  }

  // Sets what to draw: a tree, by "bytes" or "count", and the locations that a search matches
  // (null: no search).
  set(tree, by, matches) {
    this.tree = tree;
    this.by = by;
    this.matches = matches;
  }

  // Lays the tree out from the zoomed frame and paints it.
  show() {
    if (!this.width) return;
    this.layout();
    this.spacer.style.height = `${this.levels.length * this.rowHeight}px`;
    this.paint();
  }

  // this.levels: for each depth the boxes {node, x, width}, from left to right; node −1 stands for
  // the frames that are too small to draw.
  layout() {
    const {tree, by, width} = this;
    const value = tree[by];
    const above = [];
    for (let node = this.zoom; node !== 0; node = tree.parent[node]) above.push(tree.parent[node]);
    this.levels = above.reverse().map((node) => [{node, x: 0, width}]);
    this.zoomLevel = this.levels.length;
    const whole = value[this.zoom];
    const scale = whole > 0 ? width / whole : 0;
    let level = [{node: this.zoom, x: 0, width}];
    while (level.length > 0) {
      this.levels.push(level);
      const below = [];
      for (const box of level) {
        if (box.node < 0 || value[box.node] * scale < 1) continue;
        const children = tree.children(box.node, by);
        let x = box.x;
        let i = 0;
        for (; i < children.length && value[children[i]] * scale >= 1; ++i) {
          below.push({node: children[i], x, width: value[children[i]] * scale});
          x += value[children[i]] * scale;
        }
        let rest = 0;  // the width of the frames that are too small
        for (; i < children.length; ++i) rest += value[children[i]] * scale;
        if (rest >= 1) below.push({node: -1, x, width: rest});
      }
      level = below;
    }
  }

  paint() {
    if (!this.levels) return;
    const ratio = window.devicePixelRatio || 1;
    const {canvas, width, height, rowHeight} = this;
    const wanted = [Math.round(width * ratio), Math.round(height * ratio)];
    if (canvas.width !== wanted[0] || canvas.height !== wanted[1]) {
      [canvas.width, canvas.height] = wanted;
      canvas.style.width = `${width}px`;
      canvas.style.height = `${height}px`;
    }
    const context = canvas.getContext("2d", {alpha: false});
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.fillStyle = this.palette.paper;
    context.fillRect(0, 0, width, height);
    context.textBaseline = "middle";
    context.font = this.font;
    this.letter = context.measureText("m").width;
    const top = this.element.scrollTop;
    canvas.style.transform = `translateY(${top}px)`;
    const first = Math.floor(top / rowHeight);
    const last = Math.min(this.levels.length, Math.ceil((top + height) / rowHeight));
    for (let depth = first; depth < last; ++depth) {
      for (const box of this.levels[depth])
        this.paintBox(context, box, depth, depth * rowHeight - top);
    }
  }

  paintBox(context, box, depth, y) {
    const {palette, rowHeight} = this;
    const wide = Math.max(0.5, box.width - 1);
    if (box.node < 0) {
      context.fillStyle = palette.faint;
      context.fillRect(box.x, y, wide, rowHeight - 1);
      return;
    }
    const location = this.tree.location[box.node];
    const hue = location >= 0 ? this.hueOf[location] : -1;
    const matched = this.matches !== null && location >= 0 && this.matches[location] === 1;
    context.globalAlpha =
        (this.matches !== null && !matched ? 0.35 : 1) * (depth < this.zoomLevel ? 0.6 : 1);
    context.fillStyle = hue >= 0 ? palette.grounds[hue] : palette.grounds[report.hues];
    context.fillRect(box.x, y, wide, rowHeight - 1);
    // Every other function is a little darker, to distinguish neighbours of the same hue.
    if (location > 0 && location % 2 === 1) {
      context.fillStyle = "rgba(0, 0, 0, 0.07)";
      context.fillRect(box.x, y, wide, rowHeight - 1);
    }
    context.globalAlpha = 1;
    if (matched) this.outline(context, box, y, palette.mark, 2);
    if (box.node === this.at || box.node === this.over)
      this.outline(context, box, y, palette.line, 2);
    if (box.width > 28) this.paintName(context, box, location, matched, y);
  }

  outline(context, box, y, colour, thick) {
    context.strokeStyle = colour;
    context.lineWidth = thick;
    context.strokeRect(
        box.x + thick / 2, y + thick / 2, Math.max(1, box.width - 1 - thick),
        this.rowHeight - 1 - thick);
  }

  paintName(context, box, location, matched, y) {
    const capacity = Math.floor((box.width - 8) / this.letter);
    const dim = this.matches !== null && !matched;
    const name = report.frameName(this.data, location);
    const where = location >= 0 ? report.frameWhere(this.data, location, report.state) : "";
    const shown = name.length > capacity ? `${name.slice(0, Math.max(1, capacity - 1))}…` : name;
    context.fillStyle = dim ? this.palette.quiet : this.palette.ink;
    // Characters of other scripts may be wider: maxWidth keeps the name inside its box.
    context.font = location >= 0 && this.data.place_kind[location] & report.kind.own ?
        this.boldFont :
        this.font;
    context.fillText(shown, box.x + 4, y + this.rowHeight / 2, box.width - 6);
    context.font = this.font;
    context.globalAlpha = 0.7;
    let at = name.length + 2;
    // The file and the line, then the line's text, as far as there is room.
    const source = where.includes(":") ? report.locationSource(this.data, location) : "";
    for (const text of [where, source]) {
      const left = capacity - at;
      if (left < 6) break;
      if (text === "") continue;
      context.fillText(
          text.length > left ? `${text.slice(0, left - 1)}…` : text, box.x + 4 + at * this.letter,
          y + this.rowHeight / 2, Math.max(1, box.width - 8 - at * this.letter));
      at += text.length + 2;
    }
    context.globalAlpha = 1;
  }

  // The box at a point of the element, or undefined.
  boxAt(x, y) {
    const level = this.levels?.[Math.floor((y + this.element.scrollTop) / this.rowHeight)];
    if (!level) return undefined;
    return level[d3.bisector((box) => box.x).right(level, x) - 1];
  }

  // The position of a node's box in this.levels: [depth, index]; undefined if it is not drawn.
  positionOf(node) {
    let depth = -1;
    for (let at = node;; at = this.tree.parent[at]) {
      ++depth;
      if (at === 0) break;
    }
    const index = this.levels[depth]?.findIndex((box) => box.node === node) ?? -1;
    return index < 0 ? undefined : [depth, index];
  }

  // Scrolls the zoomed frame into the upper half, with a few of its callers.
  reveal() {
    const y = this.zoomLevel * this.rowHeight;
    const {scrollTop} = this.element;
    if (y >= scrollTop && y <= scrollTop + this.height / 2) return;
    this.element.scrollTop = Math.max(0, y - 3 * this.rowHeight);
    this.paint();
  }

  scrollTo(depth) {
    const y = depth * this.rowHeight;
    const {scrollTop} = this.element;
    if (y < scrollTop)
      this.element.scrollTop = y;
    else if (y + 2 * this.rowHeight > scrollTop + this.height)
      this.element.scrollTop = y + 2 * this.rowHeight - this.height;
  }
};
