"""Persons who walk pages, by keyboard or by pointing, and look at each page that they come to."""

import re
from collections.abc import Callable

from playwright.sync_api import Error, FilePayload, Locator, Page, expect

from hits.models import Assignment, Batch
from tests.accessibility import accessibility_problems
from tests.console.conftest import PASSWORD
from tests.console.hands import Hands, Keyboard, rate_all
from tests.console.work import work_off


class Walker:
    """Somebody's browser, and how they work it; a page is in order wherever it is looked at."""

    def __init__(self, page: Page, hands: Hands, name: str) -> None:
        self.page, self.hands, self.name = page, hands, name
        self.problems: list[str] = []
        page.on("console", lambda entry: entry.type == "error" and self._note(entry.text))
        page.on("pageerror", lambda error: self._note(str(error)))

    def _note(self, text: str) -> None:
        # A request that a newer one replaced is no fault.
        if not text.startswith(("htmx:afterRequest", "htmx:sendAbort")):
            self.problems.append(text)

    def press(self, role: str, name: str | re.Pattern[str], **options: bool) -> None:
        self.hands.press(self.page.get_by_role(role, name=name, **options).first)

    def submit(self, button: str) -> None:
        """Press a form's button; what it asks for has been done by then."""
        with self.page.expect_navigation():
            self.press("button", button, exact=True)

    def write(self, label: str, text: str) -> None:
        fields = self.page.locator("input, textarea")
        self.hands.write(self.page.get_by_label(label, exact=True).and_(fields), text)

    def choose(self, label: str, option: str) -> None:
        self.hands.choose(self.page.get_by_label(label, exact=True), option)

    def see(self, text: str | re.Pattern[str]) -> None:
        expect(self.page.get_by_text(text).first).to_be_visible()

    def see_heading(self, text: str) -> None:
        expect(self.page.get_by_role("heading", name=text).first).to_be_visible()

    def open_stage(self, name: str) -> None:
        """A stage's page, from the list of stages, which a telephone unfolds."""
        folded = self.page.locator("nav.stages.narrow summary")
        if folded.is_visible():
            self.hands.press(folded)
        stages = self.page.get_by_role("navigation", name="Stages of the study")
        self.hands.press(stages.get_by_role("link", name=re.compile(f"^{name}")).first)
        self.see_heading(name)

    def press_page(self, name: str) -> None:
        """A collection's page, from the list of them, which a telephone unfolds."""
        folded = self.page.locator("nav.stages.narrow summary")
        if folded.is_visible():
            self.hands.press(folded)
        pages = self.page.get_by_role("navigation", name="Pages of the collection")
        self.hands.press(pages.get_by_role("link", name=re.compile(f"^.?\\s*{name}")).first)
        self.see_heading(name)

    def invite(self, role: str) -> str:
        """On a team's page: the link by which Nina joins the team."""
        self.write("E-mail address", "nina@example.org")
        self.choose("Role", role)
        self.press("button", "Invite")
        link = self.page.get_by_text(re.compile("/invited/")).inner_text()
        self.look("team")
        return link

    def join(self, link: str, team: str) -> None:
        """Make the account that a link invites to, and be in the team."""
        self.page.goto(link)
        self.look("invitation")
        self.write("Username", self.name)
        self.write("Password", PASSWORD)
        self.press("button", "Make the account and join")
        self.see_heading(team)

    def connect_this_site(self) -> None:
        """On a study's Launch page, for the team that has no marketplace yet."""
        self.look("launch-connect")
        self.press("button", "Connect this site's marketplace")
        self.see("Connecting")
        work_off()
        expect(self.page.get_by_role("button", name="Publish the pilot")).to_be_visible()

    def publish(self, button: str, price: str, name: str) -> None:
        """Wait for the price and the checks, look, and publish."""
        expect(self.page.locator("#cost .sum")).to_have_text(price)
        work_off()
        expect(self.page.locator("#checks .pending")).to_have_count(0)
        self.look(name)
        n_before = Batch.objects.count()
        self.submit(button)
        self.finish_job()
        assert Batch.objects.count() == n_before + 1
        self.see(re.compile("assignments? published"))
        self.look(f"{name}-done")

    def collect(self) -> None:
        self.open_stage("Collect")
        self.submit("Collect answers")
        self.finish_job()
        self.look("collect")

    def upload(self, name: str, content: bytes) -> None:
        """Choose a file on this computer; its dialog is the system's, not the page's."""
        file: FilePayload = {
            "name": name,
            "mimeType": "application/octet-stream",
            "buffer": content,
        }
        self.page.get_by_label("File", exact=True).set_input_files(file)

    def download(self, link: str) -> bytes:
        """What a link downloads."""
        with self.page.expect_download() as download:
            self.press("link", link, exact=True)
        return download.value.path().read_bytes()

    def finish_job(self) -> None:
        """Let the background worker do what was requested; the page says when it is done."""
        work_off()
        expect(self.page.locator(".notice.success").filter(has_text="done")).to_be_visible()

    def look(self, name: str, *, frames: bool = True) -> None:
        """Accessible, within the window's width, without errors; the checker makes some itself."""
        assert self.problems == [], (name, self.problems)
        for last in (False, False, True):
            try:
                problems = accessibility_problems(self.page, frames=frames)
                break
            except Error:  # a job that ended has the page loaded anew
                if last:
                    raise
                self.page.wait_for_load_state()
        assert problems == [], (name, problems)
        width = self.page.viewport_size["width"]
        assert self.page.evaluate("document.documentElement.scrollWidth") <= width, name
        self.problems.clear()


class Worker(Walker):
    """Somebody who opens a worker account on the site, and does HITs in a browser."""

    def _note(self, text: str) -> None:
        # A draft that was on its way when its answers were handed in is refused.
        if "409 (Conflict)" not in text:
            super()._note(text)

    def sign_up(self) -> None:
        self.page.goto("/worker/signup/")
        self.look("worker-signup")
        self.write("Name or e-mail address", self.name)
        self.write("Password", PASSWORD)
        self.write("Password confirmation", PASSWORD)
        self.press("button", "Sign up")
        self.page.wait_for_url("**/worker/")

    def do_a_hit(self, title: str) -> None:
        self.look("worker-hits")
        self.press("link", title)
        expect(self.page.locator("form.accept")).to_be_visible()
        self.press("button", "Accept this HIT")
        self.page.wait_for_url("**/worker/assignments/**")
        rate_all(self.page, self.hands)
        # Pinned on a telephone, beside the responses on a desk, and never both.
        context = self.task.get_by_text(re.compile(r"^Context \d$")).filter(visible=True)
        expect(context).to_have_count(1)
        self.look("worker-task")
        self.submit_answers()
        self.look("worker-submitted", frames=False)

    def rate_by(self, share: Callable[[str], float]) -> None:
        """Give every response the share of its line that its text calls for."""
        expect(self.task.locator("#progress")).not_to_be_empty()
        for card in self.task.locator(".card").all():
            part = share(card.locator(".said").inner_text())
            self.hands.slide(card.get_by_role("slider"), part)

    def submit_answers(self) -> None:
        before = self.page.url
        self.hands.press(self.task.get_by_role("button", name="Submit"))
        self.page.wait_for_url(lambda url: url != before)

    @property
    def task(self):
        return self.page.frame_locator("iframe#task")


class Reviewer(Walker):
    """Somebody at the review desk."""

    def turn_to(self, assignment: Assignment) -> None:
        """Go through the queue to a submission: on to its end, then back."""
        heading = f"{assignment.hit.item.key}, answered by {assignment.worker.worker_id}"
        wanted = self.page.get_by_role("heading", name=heading)
        with self.page.expect_navigation():
            self.hands.press(self.page.locator(".tabs [aria-current]"))
        onward = True
        while not wanted.count():
            onward = onward and self.page.get_by_role("link", name="Next submission").count() > 0
            with self.page.expect_navigation():
                self._turn(onward)

    def _turn(self, onward: bool) -> None:
        if isinstance(self.hands, Keyboard):
            self.page.keyboard.press("j" if onward else "k")
        else:
            name = "Next submission" if onward else "Previous submission"
            self.page.get_by_role("link", name=name).click()

    def decide(self, name: str, **fields: str) -> None:
        """Press a decision's button, or the menu's; write what it asks for, and store it."""
        control = self._dock.locator("a, button").filter(has_text=name, visible=True)
        if not control.count():
            self.hands.press(self._dock.locator(".other-acts summary"))
        self.hands.press(control.first)
        for label, text in fields.items():
            self.write(label, text)

    def store(self, button: str, note: str) -> None:
        self.press("button", button, exact=True)
        expect(self.page.get_by_role("status").first).to_contain_text(note)

    def open_desk(self) -> None:
        """The desk, with the flags of all that has come."""
        self.open_stage("Review")
        work_off()
        expect(self.page.locator("#measuring")).to_have_count(0)

    def approve_unflagged(self, n: int, usd: str = "") -> None:
        """Approve by rule so many submissions, which come to so much; or whose participants are
        paid by their recruiter."""
        self.press("link", "By rule…")
        self.press("link", "Approve what has no flag")
        self.write("Waiting for at least, hours", "0")
        self.press("button", "Preview")
        said = f"${usd}" if usd else "whose participants the recruiter pays"
        self.see_heading(f"It takes {n} submissions, {said}")
        self.look("rule")
        self.press("button", f"Decide so on {n}")

    def approve(self, usd: str) -> None:
        self.decide(f"Approve ${usd}")
        expect(self.page.get_by_role("status").first).to_contain_text("Approve")

    def send(self, n: int) -> None:
        """Send what is decided, and wait for it."""
        self.hands.press(self._dock.get_by_role("link", name="Send…"))
        self.send_all(n)

    def send_all(self, n: int) -> None:
        self.look("send")
        self.press("button", re.compile(f"Send {n} decision"))
        expect(self.page.get_by_role("status").first).to_contain_text("Sending in the background")
        self.finish_job()

    @property
    def _dock(self) -> Locator:
        return self.page.locator(".dock")
