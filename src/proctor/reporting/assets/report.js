"use strict";
(() => {
  const bar = document.querySelector(".filter");
  const find = document.getElementById("find");
  const shown = document.getElementById("shown");
  const openAll = document.getElementById("open-all");
  const toggles = [...bar.querySelectorAll("[data-toggle]")];
  const trials = [...document.querySelectorAll(".trial")];
  const rows = new Map([...document.querySelectorAll("tr[data-row]")].map((row) => [row.dataset.row, row]));
  const rowsWithTrials = new Set(trials.map((trial) => trial.dataset.row));
  const texts = new WeakMap();

  const pressed = (toggle) => toggle.getAttribute("aria-pressed") === "true";

  const textOf = (trial) => {
    if (!texts.has(trial)) texts.set(trial, trial.textContent.toLowerCase());
    return texts.get(trial);
  };

  const apply = () => {
    const words = find.value.toLowerCase().split(/\s+/).filter(Boolean);
    const outcomes = new Set(toggles.filter((t) => pressed(t)).map((t) => t.dataset.toggle));
    const matchingRows = new Set();
    let count = 0;
    for (const trial of trials) {
      const fits = outcomes.has(trial.dataset.outcome) && words.every((word) => textOf(trial).includes(word));
      trial.hidden = !fits;
      if (fits) {
        count += 1;
        matchingRows.add(trial.dataset.row);
      }
    }
    const filtered = count !== trials.length;
    for (const [number, row] of rows) row.hidden = rowsWithTrials.has(number) ? !matchingRows.has(number) : filtered;
    shown.textContent = !filtered ? "" : `${count} of ${trials.length} shown`;
  };

  const reveal = () => {
    const target = location.hash.startsWith("#trial-") && document.getElementById(location.hash.slice(1));
    if (!target) return;
    const trial = target.closest(".trial");
    trial.hidden = false;
    trial.open = true;
    trial.scrollIntoView();
  };

  let waiting;
  find.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(apply, 120);
  });
  for (const toggle of toggles) {
    toggle.addEventListener("click", () => {
      toggle.setAttribute("aria-pressed", String(!pressed(toggle)));
      apply();
    });
  }
  openAll.addEventListener("click", () => {
    const open = openAll.textContent === "Open all";
    for (const trial of trials) if (!trial.hidden) trial.open = open;
    openAll.textContent = open ? "Close all" : "Open all";
  });
  addEventListener("hashchange", reveal);
  bar.hidden = trials.length === 0;
  reveal();
})();
