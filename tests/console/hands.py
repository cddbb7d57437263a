"""How somebody works a page: with the keyboard alone, or by pointing."""

from playwright.sync_api import Locator, Page, expect

MOST_TABS = 250
HAS_FOCUS = "node => node === document.activeElement"


class Keyboard:
    """Tab, arrows, Enter and Space: nothing is focused but by the keys that focus it."""

    def press(self, control: Locator) -> None:
        """Follow a link, press a button, unfold."""
        self._reach(control)
        control.page.keyboard.press("Enter")

    def write(self, field: Locator, text: str) -> None:
        """Put a text in the place of what a field holds."""
        self._reach(field)
        field.page.keyboard.press("ControlOrMeta+A")
        field.page.keyboard.insert_text(text)

    def choose(self, options: Locator, name: str) -> None:
        """Choose one of a list by the letters that it begins with."""
        self._reach(options)
        options.page.keyboard.type(name)
        expect(options.locator("option:checked")).to_have_text(name)

    def pick(self, radio: Locator) -> None:
        """Choose one of a group, which is one stop of Tab, by the arrows."""
        group = f"input[type=radio][name='{radio.get_attribute('name')}']"
        if radio.page.locator(f"{group}:checked").count():
            self._reach(radio.page.locator(f"{group}:checked"))
        else:
            self._reach(radio.page.locator(group).first)
            radio.page.keyboard.press("Space")
        for _step in range(MOST_TABS):
            if radio.is_checked():
                return
            radio.page.keyboard.press("ArrowDown")
        raise AssertionError(f"The arrows do not lead to {radio}")

    def tick(self, box: Locator) -> None:
        """Tick a box, which Enter would not: it sends the form."""
        self._reach(box)
        box.page.keyboard.press("Space")
        expect(box).to_be_checked()

    def slide(self, slider: Locator, share: float) -> None:
        """Move along a line, by tenths."""
        self._reach(slider)
        slider.page.keyboard.press("Home")
        for _step in range(round(10 * share)):
            slider.page.keyboard.press("PageUp")

    def _reach(self, control: Locator) -> None:
        expect(control).to_be_visible()
        for _tab in range(MOST_TABS):
            if control.evaluate(HAS_FOCUS):
                return
            control.page.keyboard.press("Tab")
        raise AssertionError(f"Tab does not lead to {control}")


class Pointer:
    """A mouse, or a finger."""

    def press(self, control: Locator) -> None:
        control.click()

    def write(self, field: Locator, text: str) -> None:
        field.fill(text)

    def choose(self, options: Locator, name: str) -> None:
        options.select_option(label=name)

    def pick(self, radio: Locator) -> None:
        radio.check()

    def tick(self, box: Locator) -> None:
        box.check()

    def slide(self, slider: Locator, share: float) -> None:
        box = slider.bounding_box()
        assert box
        slider.click(position={"x": box["width"] * share, "y": box["height"] / 2})


Hands = Keyboard | Pointer


def rate_all(page: Page, hands: Hands) -> None:
    """Give every slider of the worker's page a value of its own."""
    task = page.frame_locator("iframe#task")
    expect(task.locator("#progress")).not_to_be_empty()
    sliders = task.get_by_role("slider")
    for number, slider in enumerate(sliders.all()):
        if isinstance(hands, Keyboard):
            slider.press("Home")
            for _step in range(1 + number % 9):
                page.keyboard.press("PageUp")
        else:
            box = slider.bounding_box()
            assert box
            slider.click(
                position={"x": box["width"] * (1 + number % 8) / 9, "y": box["height"] / 2}
            )
