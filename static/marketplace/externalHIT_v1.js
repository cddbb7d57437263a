// The functions that pages written for Mechanical Turk expect from externalHIT_v1.js,
// written anew for this marketplace.
(function () {
  "use strict";
  const here = new URL(document.currentScript.src).origin;

  // As it stands in the address, not decoded: so pages have always had it.
  window.turkGetParam = function (name, defaultValue) {
    const pairs = window.location.search.slice(1).split("&");
    const found = pairs.find((pair) => pair.split("=")[0] === name);
    return found === undefined ? defaultValue : found.slice(name.length + 1);
  };

  window.turkDecode = function (text) {
    return decodeURIComponent(text.replace(/\+/g, " "));
  };
  window.decode = window.decode || window.turkDecode;

  window.turkGetSubmitToHost = function () {
    const host = window.turkDecode(window.turkGetParam("turkSubmitTo", here));
    return /^(https?:)?\/\//.test(host) ? host.replace(/\/$/, "") : here;
  };

  window.turkSetAssignmentID = function (formName, buttonName) {
    const assignmentId = window.turkGetParam("assignmentId", "");
    const form = document.getElementById(formName || "mturk_form");
    let field = document.getElementById("assignmentId");
    if (!field && form) {
      field = document.createElement("input");
      field.type = "hidden";
      field.id = field.name = "assignmentId";
      form.append(field);
    }
    if (field) field.value = assignmentId;
    if (form) form.action = window.turkGetSubmitToHost() + "/mturk/externalSubmit";
    const button = document.getElementById(buttonName || "submitButton");
    if (button && assignmentId === "ASSIGNMENT_ID_NOT_AVAILABLE") {
      const message = "You must accept the HIT before you can submit the results.";
      button.disabled = true;
      if (button.tagName === "INPUT") button.value = message;
      else button.textContent = message;
    }
  };
})();
