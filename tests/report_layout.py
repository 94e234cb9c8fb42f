"""JavaScript that checks a page's layout in a browser and returns what is wrong."""

from __future__ import annotations

# Elements that scroll on a screen on purpose; their contents may be wider.
SCROLLS = ".wide, pre"
CARDS = "section, .tiles li, header > div, footer"

# Elements whose box exceeds that of their parent, and texts that exceed their card.
OVERFLOWS = (
    """() => {
  const inside = (inner, outer) => inner.left >= outer.left - 1 && inner.right <= outer.right + 1
    && inner.top >= outer.top - 1 && inner.bottom <= outer.bottom + 1;
  const said = element => `${element.tagName} ${element.className.baseVal ?? element.className}: `
    + element.textContent.trim().slice(0, 60);
  const found = [];
"""
    f"  const scrolling = '{SCROLLS}', cards = '{CARDS}';"
    """
  const scrolls = element => {
    const found = element.closest(scrolling);
    return found !== null && getComputedStyle(found).overflowX === 'auto';
  };
  for (const element of document.body.querySelectorAll('*:not(svg *)')) {
    const parent = element.parentElement;
    if (!element.checkVisibility() || scrolls(parent)) continue;
    // The box of an inline parent is that of its letters, not of its lines.
    if (getComputedStyle(parent).display === 'inline') continue;
    if (!inside(element.getBoundingClientRect(), parent.getBoundingClientRect()))
      found.push(`leaves its parent: ${said(element)}`);
  }
  for (const text of document.querySelectorAll('svg.chart text')) {
    if (!text.textContent || !text.checkVisibility()) continue;
    const chart = text.closest('svg').getBoundingClientRect();
    if (!inside(text.getBoundingClientRect(), chart))
      found.push(`leaves its chart: ${said(text)} of ${text.closest('figure').textContent}`);
  }
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node; (node = walker.nextNode());) {
    const card = node.parentElement.closest(cards);
    if (!node.data.trim() || !card || node.parentElement.closest('svg')) continue;
    if (scrolls(node.parentElement) || !node.parentElement.checkVisibility()) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    for (const line of range.getClientRects())
      if (!inside(line, card.getBoundingClientRect())) found.push(`is cut: ${node.data}`);
  }
  if (document.documentElement.scrollWidth > innerWidth) found.push('the page scrolls sideways');
  return found;
}"""
)

# Texts of one chart that overlap.
COLLISIONS = """() => [...document.querySelectorAll('svg.chart')].flatMap(svg => {
  const texts = [...svg.querySelectorAll('text')].filter(
    text => text.textContent && text.checkVisibility());
  const boxes = texts.map(text => text.getBoundingClientRect());
  return boxes.flatMap((one, i) => boxes.slice(i + 1).flatMap((other, j) => {
    const across = Math.min(one.right, other.right) - Math.max(one.left, other.left);
    const down = Math.min(one.bottom, other.bottom) - Math.max(one.top, other.top);
    // Boxes of letters are higher than the letters.
    return across > 1 && down > 4
      ? [`${texts[i].textContent} | ${texts[i + 1 + j].textContent}`] : [];
  }));
})"""

# The smallest text of a chart, in pixels as drawn.
SMALLEST_PX = """() => Math.min(...[...document.querySelectorAll('svg.chart text')]
  .filter(text => text.textContent)
  .map(text => parseFloat(getComputedStyle(text).fontSize) * text.getScreenCTM().a))"""

# The text with the lowest contrast to its background: an element's colour or a shape of a chart.
LOWEST_CONTRAST = """() => {
  const light = text => {
    const parts = text.match(/[0-9.]+/g).map(Number);
    const [r, g, b] = parts.slice(0, 3).map(v => {
      v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; });
    const solid = parts.length < 4 || parts[3] > 0.99;
    return {value: 0.2126 * r + 0.7152 * g + 0.0722 * b, solid};
  };
  const behind = element => {
    for (let at = element; at; at = at.parentElement) {
      const found = light(getComputedStyle(at).backgroundColor);
      if (found.solid) return found.value;
    }
    return 1;
  };
  const shapeBehind = text => {
    const box = text.getBoundingClientRect();
    const [x, y] = [(box.left + box.right) / 2, (box.top + box.bottom) / 2];
    const shapes = [...text.closest('svg').querySelectorAll('path, rect')].filter(shape => {
      const fill = getComputedStyle(shape).fill, at = shape.getBoundingClientRect();
      return fill.startsWith('rgb') && light(fill).solid && !shape.closest('defs')
        && at.left < x && x < at.right && at.top < y && y < at.bottom;
    });
    return shapes.length ? light(getComputedStyle(shapes.at(-1)).fill).value : null;
  };
  let least = {ratio: 99};
  const texts = 'h1,h2,h3,p,li,td,th,dt,dd,figcaption,summary,pre,a,b,strong,span,svg.chart text';
  for (const element of document.querySelectorAll(texts)) {
    if (!element.textContent.trim() || !element.checkVisibility()) continue;
    const style = getComputedStyle(element), chart = element.closest('svg');
    const ink = light(chart ? style.fill : style.color).value;
    const paper = (chart && shapeBehind(element)) ?? behind(chart?.closest('figure') ?? element);
    const ratio = (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
    if (ratio < least.ratio) least = {ratio, tag: element.tagName, text: element.textContent};
  }
  return least;
}"""
