import json
from dataclasses import dataclass

from axe_playwright_python.base import AXE_SCRIPT
from axe_playwright_python.sync_playwright import Axe

from tests.pictures import keep_picture

# What somebody operates; every other role is read only.
CONTROLS = {
    "button", "checkbox", "combobox", "link", "listbox", "radio", "slider", "spinbutton", "textbox",
}  # fmt: skip
GROUPS = {"group", "radiogroup"}
# A sign such as "−" on a button, or a digit, is measured as all text is, by axe's own limits,
# which have to be repeated here; by default axe leaves it to a person to judge.
CONTRAST = {
    "ignoreUnicode": False,
    "ignoreLength": True,
    "ignorePseudo": False,
    "boldValue": 700,
    "boldTextPt": 14,
    "largeTextPt": 18,
    "contrastRatio": {"normal": {"expected": 4.5}, "large": {"expected": 3}},
    "pseudoSizeThreshold": 0.25,
}
SETTINGS = {
    "checks": [{"id": "color-contrast", "options": CONTRAST}],
    # A sandboxed frame has no origin of its own that could be named.
    "allowedOrigins": ["<unsafe_all_origins>"],
}
PAUSES_MS = (300, 1000)
SCRIPT = f"{AXE_SCRIPT}; axe.configure({json.dumps(SETTINGS)});"


@dataclass(frozen=True)
class Node:
    """One node of the accessibility tree, with what Chromium computed for it."""

    role: str
    name: str
    description: str


def accessibility_problems(page, *, frames=True):
    """Every node that fails a rule of axe's, or of which axe cannot say that it passes.

    What is `incomplete` counts as a fault: ids that occur twice are among it. Without `frames`
    their content is left out, such as the page that a requester answers for. What fails is
    scrolled to the middle and looked at again: a page may still be laid out, such as a frame
    that grows with its content, and a pinned bar lies over whatever ends under it.
    """
    keep_picture(page)
    problems = _problems(page, frames)
    for pause in PAUSES_MS:
        if not problems:
            break
        _scroll_to(page, next(iter(problems.values())))
        page.wait_for_timeout(pause)
        again = _problems(page, frames)
        problems = {problem: node for problem, node in problems.items() if problem in again}
    return list(problems)


def _scroll_to(page, node):
    for frame in page.frames:
        for found in frame.query_selector_all(node["target"][-1]):
            found.evaluate("node => node.scrollIntoView({ block: 'center' })")


def _problems(page, frames):
    options = {
        "iframes": frames,
        # A frame of a busy machine answers late.
        "pingWaitTime": 10_000,
        "resultTypes": ["violations", "incomplete"],
        "rules": {"frame-tested": {"enabled": frames}},
    }
    for frame in page.frames[1:] if frames else []:
        frame.evaluate(SCRIPT)
    response = Axe(SCRIPT).run(page, options=options).response
    return {
        f"{kind} {rule['id']}: {node['html']} ({_reasons(node)})": node
        for kind in ("violations", "incomplete")
        for rule in response[kind]
        for node in rule["nodes"]
        if not (kind == "incomplete" and _is_seen_to_be_well(page, node))
    }


# Whether the browser itself finds nothing over any line of an element's text.
ON_TOP = """node => {
  const range = document.createRange();
  range.selectNodeContents(node);
  return [...range.getClientRects()].every((line) => [0.02, 0.5, 0.98].every((share) => {
    const x = line.left + share * line.width, y = line.top + line.height / 2;
    const top = document.elementFromPoint(x, y);
    return top && (node.contains(top) || top.contains(node));
  }));
}"""


def _is_seen_to_be_well(page, node):
    return _is_in_a_picture(node) or _is_cut_off(page, node) or _is_on_top(page, node)


def _is_on_top(page, node):
    if _contrast_key(node) not in ("bgOverlap", "elmPartiallyObscuring"):
        return False
    selector = node["target"][-1]
    found = [each for frame in page.frames for each in frame.query_selector_all(selector)]
    return len(found) == 1 and found[0].evaluate(ON_TOP)


def _is_in_a_picture(node):
    """Whether axe sees no background because the text is one of a chart's, drawn over its marks.

    Such a chart is a picture with a name, and its table or data stands beside it.
    """
    return node["html"].startswith(("<text ", "<tspan")) and _contrast_key(node) == "imgNode"


def _is_cut_off(page, node):
    if _contrast_key(node) != "elmPartiallyObscured" or len(node["target"]) != 1:
        return False
    return page.eval_on_selector(
        node["target"][0],
        "node => { const box = node.closest('.scroll');"
        " return !!box && (box.scrollWidth > box.clientWidth"
        " || box.scrollHeight > box.clientHeight); }",
    )


def _contrast_key(node):
    keys = [check["data"].get("messageKey") for check in node["any"] if check["data"]]
    return keys[0] or "" if len(keys) == 1 else ""


def _reasons(node):
    checks = node["any"] + node["all"] + node["none"]
    return "; ".join(check["message"] for check in checks)


def accessible_nodes(page, roles):
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


def _value(node, name):
    return str(node.get(name, {}).get("value", ""))
