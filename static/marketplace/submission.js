// Sending the answers in the frame's place: tried again while there is no connection.

const AGAIN_S = 10;

// What came of one try: received, refused (with the reason), or nothing yet.
async function attempt(address, fields) {
  const response = await fetch(address, {
    method: "POST", body: fields, headers: { Accept: "application/json" },
  }).catch(() => null);
  if (!response || response.status >= 500 || response.status === 429) return {};
  const data = await response.json().catch(() => null);
  if (!data) return {};
  return response.ok ? { received: data } : { refused: data.error, status: response.status };
}

export class Submission {
  constructor(address, assignment, on) {
    Object.assign(this, { address, assignment, on, isSending: false });
    addEventListener("online", () => this.now());
  }

  // Once, however often the frame asks for it meanwhile.
  async send(fields) {
    if (this.isSending) return;
    this.isSending = true;
    const body = new URLSearchParams({ assignmentId: this.assignment });
    for (const [name, value] of Object.entries(fields)) body.append(name, String(value));
    this.on.sending();
    while (this.isSending) {
      const { received, refused, status } = await attempt(this.address, body);
      if (received) return this.on.received(received);
      if (refused) this.isSending = false;
      if (refused) return this.on.refused(refused, status);
      if (!this.isSending) return;
      this.on.waiting(AGAIN_S);
      await new Promise((resolve) => {
        this.now = resolve;
        setTimeout(resolve, AGAIN_S * 1000);
      });
    }
  }

  now() { /* while it waits: do not wait any longer */ }

  stop() {
    this.isSending = false;
    this.now();
  }
}
