// Drafts: what the page in the frame says was entered, saved on the server, and kept in this
// browser for as long as the server does not have it.

const LARGEST = 60_000; // as marketplace/hits/drafts.py has it
const KEEPALIVE = 60_000; // a browser sends no more while it leaves a page
const SOON_MS = 300, AGAIN_MS = 10_000;
const LONGEST_MS = 7 * 24 * 3600 * 1000;
const kept = (key) => { try { return JSON.parse(localStorage[key]); } catch { return null; } };
const size = (text) => new TextEncoder().encode(text).length;

// Django's, at this moment: signing in elsewhere changes it.
const csrfToken = () =>
  document.cookie.match(/(?:^|; )csrftoken=([^;]*)/)?.[1] ??
  document.querySelector("[name=csrfmiddlewaretoken]")?.value ?? "";

export const post = (address, body, options = {}) => fetch(address, {
  method: "POST", body: JSON.stringify(body), ...options,
  headers: { "Content-Type": "application/json", "X-CSRFToken": csrfToken() },
});

// `on` is told: saved, saving, here (in this browser only), state (what the server said),
// other (a draft from elsewhere), signedOut, closed.
export class Drafts {
  constructor(address, assignment, owner, state, on) {
    Object.assign(this, { address, owner, on, revision: state.revision, key: `assay:draft:${assignment}` });
    this.latest = null; // nothing to be saved
    this.isClosed = this.isSaving = false;
    this.known = [state.draft, this.local()].filter(Boolean);
    for (const key of Object.keys(localStorage))
      if (key.startsWith("assay:draft:") && !(kept(key)?.at > Date.now() - LONGEST_MS)) localStorage.removeItem(key);
    // What this worker had entered in this HIT before its time was over.
    this.earlier = this.known.length ? null : this.attempts().map(kept).sort((one, other) => other.at - one.at)[0]?.draft;
    this.hasEntered = this.known.length > 0;
    addEventListener("pagehide", () => this.leave());
    addEventListener("online", () => this.save());
    document.addEventListener("visibilitychange", () => document.hidden ? this.save() : this.look());
  }

  attempts() {
    return Object.keys(localStorage).filter((key) => key.startsWith("assay:draft:") && kept(key)?.owner === this.owner);
  }

  local() { return kept(this.key)?.draft; }

  store(draft) {
    try { localStorage[this.key] = JSON.stringify({ ...draft, owner: this.owner, at: Date.now() }); } catch { /* full */ }
  }

  entered(draft, progress) {
    if (typeof draft !== "string" || size(draft) > LARGEST || this.isClosed) return;
    this.latest = this.last = { draft, progress: String(progress ?? "").slice(0, 100) };
    this.hasEntered = true;
    this.store(this.latest);
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.save(), SOON_MS);
  }

  async save() {
    if (!this.latest || this.isSaving || this.isClosed) return;
    const sent = this.latest;
    this.isSaving = true;
    this.on.saving();
    clearTimeout(this.timer);
    let response = null;
    try { response = await post(this.address, { ...sent, revision: this.revision }); } catch { /* offline */ }
    this.isSaving = false;
    await this.answered(response, sent);
  }

  async answered(response, sent) {
    const data = await response?.json().catch(() => null);
    if (data?.revision !== undefined) {
      this.revision = data.revision;
      this.on.state(data);
    }
    if (response?.ok && data) return this.saved(sent);
    if (response?.status === 409 && data?.draft) return this.merge(data.draft);
    if ([404, 409, 410].includes(response?.status)) return this.close(data);
    this.on.here();
    // A refusal in words is not of whoever is signed out: it is kept here alone, and not sent again.
    if (response?.status === 401 || response?.status === 403 && !data) return this.on.signedOut();
    if (![403, 413].includes(response?.status)) this.timer = setTimeout(() => this.save(), AGAIN_MS);
  }

  saved(sent) {
    this.on.saved();
    if (this.latest !== sent) return this.save();
    this.latest = null;
    localStorage.removeItem(this.key);
  }

  // The frame puts the two together, and says what came of it if it was ahead anywhere.
  merge(draft) {
    this.latest = null;
    localStorage.removeItem(this.key);
    this.on.other(draft);
  }

  // What another tab or device has saved since.
  async look() {
    if (this.isClosed || this.isSaving) return;
    const response = await fetch(this.address).catch(() => null);
    const data = await response?.json().catch(() => null);
    if (response?.status === 401) return this.on.signedOut();
    if ([404, 409, 410].includes(response?.status)) return this.close(data);
    if (!response?.ok || !data || this.isSaving) return;
    this.on.state(data);
    if (data.revision === this.revision) return;
    this.revision = data.revision;
    if (data.draft) this.on.other(data.draft);
  }

  // The time may be over before anybody comes back.
  leave() {
    if (this.last && !this.isClosed) this.store(this.last);
    if (!this.latest || this.isClosed) return;
    const body = { ...this.latest, revision: this.revision };
    post(this.address, body, { keepalive: size(JSON.stringify(body)) < KEEPALIVE }).catch(() => {});
  }

  // Nothing is kept of what was submitted or given back.
  forget() {
    this.isClosed = true;
    clearTimeout(this.timer);
    for (const key of this.attempts()) localStorage.removeItem(key);
  }

  // Once the time is over, the server deletes its draft; the worker's own stays here.
  keep() {
    const last = this.last ?? { draft: this.known[0] };
    this.isClosed = true;
    clearTimeout(this.timer);
    if (last.draft) this.store(last);
  }

  close(data) {
    this.isClosed = true;
    this.on.closed(data?.error, data?.code);
  }
}
