// The page works without this file, but for passkeys. No decision is made here: each is a form that a person sends.
"use strict";
(() => {
  const body = document.body, main = document.getElementById("main");

  let typed = false, leaving = false;
  document.addEventListener("input", () => { typed = true; });
  document.addEventListener("submit", () => { leaving = true; }); // its answer is the next page
  // Drawing anew what is being left would end the way to where the person wants to go. One that leads nowhere is over soon.
  addEventListener("beforeunload", () => { leaving = true; setTimeout(() => { leaving = false; }, 5000); });

  // A passkey's answer goes into the hidden field, and the form is sent as any other.
  const ceremony = (button, options, run) => {
    const form = button.form;
    form.addEventListener("submit", async (e) => {
      if (e.submitter && e.submitter !== button) return;
      if (form.elements.passkey.value) return;
      e.preventDefault();
      button.disabled = true;
      try {
        const credential = await run(JSON.parse(options));
        form.elements.passkey.value = JSON.stringify(credential.toJSON());
        button.disabled = false;
        form.requestSubmit(button);
      } catch (err) {
        button.disabled = leaving = false;
        let said = form.querySelector("[data-said]");
        if (!said) {
          said = document.createElement("p");
          said.className = "notice";
          said.setAttribute("role", "status");
          said.dataset.said = "";
          button.after(said);
        }
        said.textContent = "The passkey was not used, and nothing was sent. (" + err.name + ")";
      }
    });
  };
  for (const b of document.querySelectorAll("[data-passkey]"))
    ceremony(b, b.dataset.passkey, (o) => navigator.credentials.get({ publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(o) }));
  for (const b of document.querySelectorAll("[data-enrol]"))
    ceremony(b, b.dataset.enrol, (o) => navigator.credentials.create({ publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(o) }));

  // A browser that is to be told says where, in a hidden field.
  for (const b of document.querySelectorAll("[data-push]"))
    b.form.addEventListener("submit", async (e) => {
      const field = b.form.elements.subscription;
      if (field.value) return;
      e.preventDefault();
      try {
        const worker = await navigator.serviceWorker.register("/sw.js");
        await navigator.serviceWorker.ready;
        const s = await worker.pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: b.dataset.push });
        field.value = JSON.stringify(s);
        b.form.requestSubmit(b);
      } catch (err) {
        leaving = false;
        b.textContent = "This browser cannot be told (" + err.name + ")";
      }
    });

  // What moved is drawn anew by the server, and its button is deaf for a moment again. What was typed is not lost.
  if (body.dataset.live && main && (main.dataset.c || document.querySelector(".list"))) {
    const events = new EventSource("/events?" + new URLSearchParams({ c: main.dataset.c || "", after: body.dataset.after || "" }));
    events.onmessage = (e) => {
      if (leaving) return;
      const moved = JSON.parse(e.data);
      if (main.dataset.c && (moved.c !== main.dataset.c || String(moved.rev) === main.dataset.rev)) return;
      if (!typed) { location.reload(); return; }
      if (document.getElementById("moved")) return;
      const note = document.createElement("p");
      note.id = "moved";
      note.className = "notice";
      note.setAttribute("role", "status");
      note.textContent = "It moved while you were typing. ";
      const link = document.createElement("a");
      link.href = location.pathname;
      link.textContent = "Show how it stands now";
      note.append(link);
      main.prepend(note);
    };
    addEventListener("pagehide", () => events.close());
  }

  // Keys move, open and leave out; none of them decides, and none is taken from who is writing. Control+Enter presses the
  // main button, as a finger would, but not from within another form: there it would approve what somebody declines.
  const rows = [...document.querySelectorAll(".rows a, [name=keep]")], help = document.getElementById("keys");
  const writing = "input:not([type=checkbox],[type=radio]),textarea,select";
  document.addEventListener("keydown", (e) => {
    if (e.defaultPrevented || e.isComposing || help?.open) return;
    const form = e.target.closest("form");
    if ((e.ctrlKey || e.metaKey) && e.key === "Enter" && !e.repeat) {
      const go = document.querySelector("#approve .go");
      if (!go || form && form !== go.form || getComputedStyle(go).pointerEvents === "none") return;
      e.preventDefault();
      go.form.requestSubmit(go);
      return;
    }
    if (e.target.closest(writing)) return;
    if ((e.ctrlKey || e.metaKey) && e.key === "Backspace") {
      const why = document.querySelector("#decline textarea");
      if (why) { e.preventDefault(); why.focus(); }
      return;
    }
    if (!body.dataset.keys || e.ctrlKey || e.metaKey || e.altKey) return;
    const at = rows.indexOf(document.activeElement), step = { j: 1, k: -1 }[e.key];
    if (step && rows.length) rows[Math.min(Math.max(at + step, 0), rows.length - 1)].focus();
    if (e.repeat) return;
    if (e.key === "x" && rows[at]?.name === "keep") rows[at].click();
    if (e.key === "z") { // plans the way back and shows it; that has to be approved like any change
      const undo = (document.activeElement.closest(".rows li") || main.dataset.c && main)?.querySelector?.("form[action$='/undo'] button, button[formaction$='/undo']");
      if (undo) undo.form.requestSubmit(undo);
    }
    if (e.key === "?" && help) { e.preventDefault(); help.showModal(); }
  });
})();
