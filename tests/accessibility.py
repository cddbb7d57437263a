"""What assistive technology gets from a page: axe's findings and Chromium's accessibility tree."""

import json
from dataclasses import dataclass

from axe_playwright_python.base import AXE_SCRIPT
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

# What somebody operates; every other role is read only.
CONTROLS = {
    "button", "checkbox", "combobox", "link", "listbox", "radio", "slider", "spinbutton", "textbox",
}  # fmt: skip
GROUPS = {"group", "radiogroup"}
# A sign such as "−" on a button is measured as all text is, by axe's own limits, which have to be
# repeated here; by default axe leaves it to a person to judge.
CONTRAST = {
    "ignoreUnicode": False,
    "ignoreLength": False,
    "ignorePseudo": False,
    "boldValue": 700,
    "boldTextPt": 14,
    "largeTextPt": 18,
    "contrastRatio": {"normal": {"expected": 4.5}, "large": {"expected": 3}},
    "pseudoSizeThreshold": 0.25,
}
CHECKS = {"checks": [{"id": "color-contrast", "options": CONTRAST}]}
SCRIPT = f"{AXE_SCRIPT}; axe.configure({json.dumps(CHECKS)});"


@dataclass(frozen=True)
class Node:
    """One node of the accessibility tree, with what Chromium computed for it."""

    role: str
    name: str
    description: str


def accessibility_problems(page: Page, *, frames: bool = True) -> list[str]:
    """Every node that fails a rule of axe's, or of which axe cannot say that it passes.

    What is `incomplete` counts as a fault: ids that occur twice are among it.
    """
    options = {"iframes": frames, "resultTypes": ["violations", "incomplete"]}
    response = Axe(SCRIPT).run(page, options=options).response
    return [
        f"{kind} {rule['id']}: {node['html']} ({_reasons(node)})"
        for kind in ("violations", "incomplete")
        for rule in response[kind]
        for node in rule["nodes"]
    ]


def _reasons(node: dict) -> str:
    checks = node["any"] + node["all"] + node["none"]
    return "; ".join(check["message"] for check in checks)


def accessible_nodes(page: Page, roles: set[str]) -> list[Node]:
    """The nodes of these roles as Chromium exposes them, in the order of the document."""
    session = page.context.new_cdp_session(page)
    tree = session.send("Accessibility.getFullAXTree")["nodes"]
    session.detach()
    nodes = {node["nodeId"]: node for node in tree}
    ordered, waiting = [], [tree[0]["nodeId"]]
    while waiting:
        node = nodes[waiting.pop()]
        ordered.append(node)
        waiting += [child for child in reversed(node.get("childIds", [])) if child in nodes]
    return [
        Node(_value(node, "role"), _value(node, "name"), _value(node, "description"))
        for node in ordered
        if not node["ignored"] and _value(node, "role") in roles
    ]


def _value(node: dict, name: str) -> str:
    return str(node.get(name, {}).get("value", ""))
