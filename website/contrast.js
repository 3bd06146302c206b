// The texts of a page whose contrast with what lies behind them is below 4.5 to 1 (3 to 1 where they are large).
(() => {
  const part = (c) => ((c /= 255) <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
  const light = (c) => 0.2126 * part(c[0]) + 0.7152 * part(c[1]) + 0.0722 * part(c[2]);
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = 1;
  const pen = canvas.getContext("2d", { willReadFrequently: true });
  const rgba = (text) => {
    pen.clearRect(0, 0, 1, 1);
    pen.fillStyle = text;
    pen.fillRect(0, 0, 1, 1);
    const d = pen.getImageData(0, 0, 1, 1).data;
    return [d[0], d[1], d[2], d[3] / 255];
  };
  const over = (a, b) => [0, 1, 2].map((i) => a[i] * a[3] + b[i] * (1 - a[3])).concat(1);
  const behind = (e) => {
    const all = [];
    for (; e; e = e.parentElement) all.push(rgba(getComputedStyle(e).backgroundColor));
    return all.reverse().reduce((under, each) => over(each, under), [255, 255, 255, 1]);
  };
  const worst = {};
  const parts = document.querySelector("article") ? "article *, .md-nav__link, .md-tabs__link, .md-footer *" : "body *";
  for (const e of document.querySelectorAll(parts)) {
    const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
    const style = getComputedStyle(e);
    const hidden = !e.offsetParent || style.visibility === "hidden" || +style.opacity === 0;
    if (!own || hidden || e.closest("mark,[hidden],svg,.headerlink")) continue;
    const back = behind(e);
    const [high, low] = [light(over(rgba(style.color), back)), light(back)].sort((a, b) => b - a);
    const ratio = (high + 0.05) / (low + 0.05);
    if (ratio < (parseFloat(style.fontSize) >= 24 ? 3 : 4.5))
      worst[e.tagName + "." + e.className] = ratio.toFixed(2) + " " + e.textContent.trim().slice(0, 30);
  }
  return Object.entries(worst).map(([name, text]) => name + " " + text);
})();
