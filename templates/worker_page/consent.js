// Consent, asked once for each text.
const consentKey = `assay:consent:${task.consent}`;
consent = recall(consentKey);
function askConsent() {
  const isAsked = ready && !consent;
  find("#work").hidden = find("footer").hidden = !!isAsked;
  find("#consent").hidden = !isAsked && !preview;
}
{
  find("#agree").onclick = () => {
    consent = { text: task.consent, at: new Date(now()).toISOString() };
    keep(consentKey, consent);
    askConsent();
    goTo(find("#title"));
  };
  find("#disagree").onclick = () => { find("#disagreed").textContent = text("declined"); };
  find("#title").tabIndex = -1;
}
askConsent();
