// Controls the flame graph by mouse and keyboard. Either can do everything.
"use strict";

// actions: describe(node), zoom(node), search().
report.steerFlame = (canvas, actions) => {
  const {element} = canvas;
  const over = (event) => {
    const box = element.getBoundingClientRect();
    return canvas.boxAt(event.clientX - box.left, event.clientY - box.top);
  };
  const hover = (node) => {
    if (node === canvas.over) return;
    canvas.over = node;
    canvas.paint();
    actions.describe(node >= 0 ? node : canvas.at);
  };
  element.addEventListener("mousemove", (event) => hover(over(event)?.node ?? -1));
  element.addEventListener("mouseleave", () => hover(-1));
  element.addEventListener("click", (event) => {
    const node = over(event)?.node ?? -1;
    if (node >= 0) actions.zoom(node);
  });

  const go = (node) => {
    canvas.at = node;
    const [depth] = canvas.positionOf(node);
    canvas.scrollTo(depth);
    canvas.paint();
    report.announce(actions.describe(node));
  };
  // The neighbour in a direction: the caller, the largest frame inside, the next on the same level.
  const neighbour = (key) => {
    const {tree, by} = canvas;
    const drawn = canvas.at >= 0 ? canvas.positionOf(canvas.at) : undefined;
    if (!drawn) return canvas.zoom;
    if (key === "ArrowUp") return tree.parent[canvas.at];
    const [depth, index] = drawn;
    if (key === "ArrowDown") {
      if (depth < canvas.zoomLevel) return canvas.levels[depth + 1][0].node;
      const child = tree.children(canvas.at, by)[0];
      return child !== undefined && canvas.positionOf(child) ? child : canvas.at;
    }
    const level = canvas.levels[depth].filter((box) => box.node >= 0);
    const at = level.indexOf(canvas.levels[depth][index]) + (key === "ArrowRight" ? 1 : -1);
    return (level[at] ?? level[at < 0 ? 0 : level.length - 1]).node;
  };
  element.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key.startsWith("Arrow"))
      go(neighbour(event.key));
    else if (event.key === "Enter" || event.key === " ")
      actions.zoom(canvas.at >= 0 ? canvas.at : canvas.zoom);
    else if (event.key === "Backspace" || event.key === "Escape")
      actions.zoom(canvas.tree.parent[canvas.zoom]);
    else if (event.key === "Home")
      actions.zoom(0);
    else if (event.key === "/")
      actions.search();
    else
      return;
    event.preventDefault();
  });
};
