// What must work in the browser by itself: the emergency stop, the keys, and the word that nobody answers any more.
(() => {
  const element = (id) => document.getElementById(id);
  const isEntry = (target) => target.closest?.("input, textarea, select, button, [role=slider], [role=combobox], [role=option]");

  async function emergencyStop() {
    const began = performance.now();
    const say = (text, isHeld) => {
      element("held").textContent = text;
      element("held").className = `lift-held ${isHeld ? "lift-is-held" : "lift-is-not-held"}`;
    };
    say("Emergency stop: asked …", false);
    try {
      const answer = await fetch("emergency_stop", { method: "POST", signal: AbortSignal.timeout(3000) });
      const said = await answer.json();
      window.liftHeldAfter = performance.now() - began;
      say(
        said.held
          ? `Emergency stop: the plant holds, confirmed after ${window.liftHeldAfter.toFixed(0)} ms.`
          : `EMERGENCY STOP NOT CONFIRMED: ${said.words} Use the rig's own switch.`,
        said.held
      );
    } catch (error) {
      say("EMERGENCY STOP NOT CONFIRMED: nobody answers. Use the rig's own switch.", false);
    }
  }

  document.addEventListener("click", (event) => {
    if (event.target.closest?.("#emergency-stop")) emergencyStop();
    else if (event.target.closest?.("#release, #resume, #start")) element("held").className = "lift-held";
  });

  document.addEventListener(
    "keydown",
    (event) => {
      if (event.repeat || !element("emergency-stop")) return;
      if (event.key === "Escape") emergencyStop();
      if (event.key === " " && !isEntry(event.target)) {
        event.preventDefault();
        const shown = ["start", "resume", "pause"].map(element).find((button) => button?.offsetParent);
        shown?.click();
      }
    },
    true
  );

  let lostSince = null;
  setInterval(() => {
    const lost = element("lost");
    if (!lost || !window.socket) return;
    if (window.socket.connected) {
      lostSince = null;
      lost.className = "lift-lost";
      return;
    }
    lostSince ??= new Date();
    lost.textContent =
      `No connection to this page's process since ${lostSince.toLocaleTimeString()}: what is shown is old. ` +
      "The graph may go on without it; the page comes back by itself where its process does.";
    lost.className = "lift-lost lift-is-lost";
  }, 300);
})();
