// What does not fit the window: wider than it and in nothing that scrolls, a text that its own box cuts off, a text of a
// picture outside the picture. What slides into its place when the window changes has arrived first.
(async () => {
  const sliding = document.documentElement.scrollWidth && document.getAnimations();
  await Promise.all(sliding.filter((each) => each instanceof CSSTransition).map((each) => each.finished.catch(() => 0)));
  const wide = document.documentElement.clientWidth;
  const root = document.querySelector("article") || document.body;
  const said = (e) => `${e.tagName.toLowerCase()} '${(e.textContent || "").trim().slice(0, 40)}'`;
  const moves = (e) => {
    for (; e && e !== document.body; e = e.parentElement)
      if (/auto|scroll|hidden/.test(getComputedStyle(e).overflowX)) return true;
    return false;
  };
  const found = [];
  for (const e of root.querySelectorAll("*:not(svg *)")) {
    const box = e.getBoundingClientRect(), style = getComputedStyle(e);
    if (!box.width || !box.height || style.visibility === "hidden") continue;
    const placed = style.position === "fixed" || style.position === "absolute";
    if ((box.right > wide + 1 || box.left < -1) && !placed && !moves(e.parentElement))
      found.push(`${said(e)} from ${Math.round(box.left)} to ${Math.round(box.right)}`);
    if (style.overflowX === "hidden" && e.scrollWidth > e.clientWidth + 2 && (e.textContent || "").trim())
      found.push(`${said(e)} cut off: ${e.scrollWidth} in ${e.clientWidth}`);
  }
  for (const picture of root.querySelectorAll("svg")) {
    const box = picture.getBoundingClientRect();
    for (const e of picture.querySelectorAll("text")) {
      const own = e.getBoundingClientRect();
      if (!own.width || !box.width) continue;
      if (own.left < box.left - 1 || own.right > box.right + 1 || own.top < box.top - 1 || own.bottom > box.bottom + 1)
        found.push(`${said(e)} outside its picture`);
    }
  }
  if (document.documentElement.scrollWidth > wide + 1) found.push(`all of it: ${document.documentElement.scrollWidth}`);
  return found.slice(0, 5);
})();
