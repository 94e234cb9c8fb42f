"""Turns an Altair chart into SVG without active content, and into PNG.

How: vl-convert renders the chart with JavaScript in our own process, without a browser or the
network. Its SVG is then read as XML and written again with only the elements and attributes that a
drawing needs. No script, link, style or event remains, and nothing is loaded. Names of clips get a
prefix, because several drawings share a page. Starting the renderer takes a while, so a thread
starts it while Altair is imported.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from typing import Any
from xml.etree import ElementTree

SVG = "http://www.w3.org/2000/svg"
ELEMENTS = frozenset(
    {
        *("svg", "g", "path", "rect", "line", "circle", "text", "tspan", "defs", "clipPath"),
        *("linearGradient", "stop", "title"),
    }
)
ATTRIBUTES = frozenset(
    {
        *("width", "height", "viewBox", "x", "y", "x1", "x2", "y1", "y2", "dx", "dy"),
        *("cx", "cy", "r", "rx", "ry", "d", "transform", "fill", "fill-opacity", "opacity"),
        *("stroke", "stroke-width", "stroke-opacity", "stroke-dasharray", "stroke-miterlimit"),
        *("stroke-linecap", "stroke-linejoin", "text-anchor", "font-family", "font-size"),
        *("font-weight", "font-style", "offset", "stop-color", "clip-path", "id"),
        *("gradientUnits", "display"),
    }
)
# Attributes whose value may name another element of the same drawing.
NAMING = ("clip-path", "fill", "stroke")
PNG_SCALE = 2.0
# Characters that XML 1.0 does not allow, or that have no use in a text.
_FORBIDDEN = frozenset({"Cc", "Cs", "Cn"})

_COLOUR = re.compile(r"rgba?\([0-9., ]+\)")

_warm: threading.Thread | None = None


def warm_up() -> None:
    """Start the renderer in the background."""
    global _warm
    if _warm is None:
        _warm = threading.Thread(target=_start_renderer, daemon=True)
        _warm.start()


def _start_renderer() -> None:
    import vl_convert

    tiny = {"data": {"values": [{"a": 1}]}, "mark": "point", "encoding": {}}
    vl_convert.vegalite_to_svg(tiny)


def to_svg(chart: Any) -> str:
    """Return the renderer's SVG of a chart. Its text is valid XML; no more is promised."""
    import altair
    import vl_convert

    if _warm is not None:
        _warm.join()
    version = ".".join(altair.SCHEMA_VERSION.lstrip("v").split(".")[:2])
    spec = _harmless(chart.to_dict(validate=False))
    return str(vl_convert.vegalite_to_svg(spec, vl_version=version, allowed_base_urls=[]))


def to_png(svg: str) -> bytes:
    """Return a drawing as PNG, at twice its size."""
    import vl_convert

    return bytes(vl_convert.svg_to_png(svg, scale=PNG_SCALE))


def _harmless(value: Any) -> Any:
    """Return a specification whose texts are allowed in XML."""
    if isinstance(value, str):
        return "".join(c for c in value if unicodedata.category(c) not in _FORBIDDEN)
    if isinstance(value, dict):
        return {key: _harmless(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_harmless(each) for each in value]
    return value


def inert(svg: str, prefix: str) -> ElementTree.Element:
    """Return the drawing with only shapes and text; its names get ``prefix``."""
    return _kept(ElementTree.fromstring(svg), prefix)


def _kept(element: ElementTree.Element, prefix: str) -> ElementTree.Element:
    kept = ElementTree.Element(_local(element.tag))
    kept.text, kept.tail = element.text, element.tail
    for name, value in element.attrib.items():
        if name == "id":
            kept.set(name, prefix + value)
        elif name in NAMING and "(" in value:
            # A colour, or a part of this drawing: never an address.
            if value.startswith("url(#") and value.endswith(")"):
                kept.set(name, f"url(#{prefix}{value[5:-1]})")
            elif _COLOUR.fullmatch(value):
                kept.set(name, value)
        elif name in ATTRIBUTES:
            kept.set(name, value)
    if element.get("aria-label") and _local(element.tag) == "path":
        # Browsers show it under the pointer, if the shape has an inside.
        kept.set("fill", "transparent")
        ElementTree.SubElement(kept, "title").text = element.get("aria-label")
    for child in element:
        if _local(child.tag) in ELEMENTS:
            kept.append(_kept(child, prefix))
    return kept


def _local(tag: Any) -> str:
    return str(tag).rpartition("}")[2]


def inline(svg: str, prefix: str, description: str) -> str:
    """Return the drawing as part of a page.

    It takes the width that it is given, and has a description for readers who cannot see it.
    """
    drawing = inert(svg, prefix)
    for name in ("width", "height"):
        drawing.attrib.pop(name, None)
    drawing.set("class", "chart")
    drawing.set("role", "img")
    drawing.set("aria-label", description)
    return _text(drawing)


def alone(svg: str) -> str:
    drawing = inert(svg, "")
    drawing.set("xmlns", SVG)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + _text(drawing) + "\n"


def _text(drawing: ElementTree.Element) -> str:
    return ElementTree.tostring(drawing, encoding="unicode")
