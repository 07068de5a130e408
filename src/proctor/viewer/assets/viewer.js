"use strict";
// Only convenience depends on this file: every page, filter and form works without it.
(() => {
  document.documentElement.classList.add("script");
  const body = document.body;
  const one = (selector, from = document) => from.querySelector(selector);
  const all = (selector, from = document) => [...from.querySelectorAll(selector)];

  const localTimes = () => {
    const shown = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
    for (const time of all("time[datetime]")) {
      const moment = new Date(time.dateTime);
      if (Number.isNaN(moment.getTime())) continue;
      time.title = time.textContent;
      time.textContent = shown.format(moment);
    }
  };

  // Only boxes that scroll can be focused with the keyboard.
  const scrollers = () => {
    for (const box of all("pre")) {
      if (box.scrollHeight > box.clientHeight + 1 || box.scrollWidth > box.clientWidth + 1) box.tabIndex = 0;
    }
  };
  addEventListener("toggle", scrollers, true);

  // The part of the page that changes is fetched from the server again, so that only the server renders it.
  let loading;
  const swap = async (address, { keepForm = true } = {}) => {
    loading?.abort();
    loading = new AbortController();
    body.classList.add("busy");
    try {
      const answer = await fetch(address, { signal: loading.signal, credentials: "same-origin" });
      if (!answer.ok) return;
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
      const next = one("#live", fresh);
      const old = one("#live");
      if (!next || !old) return;
      const focused = keepForm && document.activeElement?.name ? document.activeElement : null;
      const opened = new Set(all("details[open] > summary", old).map((summary) => summary.textContent));
      const place = focused && { name: focused.name, start: focused.selectionStart, value: focused.value };
      old.replaceWith(next);
      for (const details of all("details", next)) {
        if (opened.has(one("summary", details)?.textContent)) details.open = true;
      }
      document.title = fresh.title;
      localTimes();
      scrollers();
      listen();
      hideTexts(document.documentElement.classList.contains("hide-texts"));
      const again = place && one(`form[data-auto] [name="${place.name}"]`);
      if (again) {
        if (again.tagName === "INPUT") again.value = place.value;
        again.focus();
        if (place.start !== null && again.setSelectionRange && again.type === "search") {
          again.setSelectionRange(place.start, place.start);
        }
      }
    } catch (error) {
      if (error.name !== "AbortError") throw error;
    } finally {
      body.classList.remove("busy");
    }
  };

  const listen = () => {
    const form = one("form[data-auto]");
    if (!form) return;
    let waiting;
    const apply = () => {
      const query = new URLSearchParams();
      for (const [name, value] of new FormData(form)) if (value && !(name === "sort" && value === "worst")) query.set(name, value);
      const address = `${location.pathname}?${query}`;
      history.replaceState(null, "", address);
      swap(address);
    };
    form.addEventListener("input", (event) => {
      clearTimeout(waiting);
      waiting = setTimeout(apply, event.target.tagName === "SELECT" ? 0 : 200);
    });
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      clearTimeout(waiting);
      apply();
    });
  };

  const follow = () => {
    if (!body.dataset.live || !window.EventSource) return;
    // A browser opens few connections per server, so pages that are not visible close theirs.
    let events;
    let waiting;
    const open = () => {
      events = new EventSource(body.dataset.live);
      events.addEventListener("change", () => {
        clearTimeout(waiting);
        waiting = setTimeout(() => swap(location.href), 100);
      });
    };
    document.addEventListener("visibilitychange", () => {
      events.close();
      if (document.hidden) return;
      swap(location.href);
      open();
    });
    addEventListener("pagehide", () => events.close());
    open();
  };

  // Whether the table of cases has the column with input and answer; remembered for all runs.
  const hideTexts = (hidden) => {
    document.documentElement.classList.toggle("hide-texts", hidden);
    for (const button of all("[data-hide-texts]")) {
      button.hidden = false;
      button.textContent = hidden ? "Show input and answer" : "Hide input and answer";
      button.setAttribute("aria-pressed", String(hidden));
    }
  };
  const areTextsHidden = () => {
    try { return localStorage.getItem("proctor-hide-texts") === "yes"; } catch { return false; }
  };
  addEventListener("click", (event) => {
    if (!event.target.closest?.("[data-hide-texts]")) return;
    const hidden = !document.documentElement.classList.contains("hide-texts");
    try { localStorage.setItem("proctor-hide-texts", hidden ? "yes" : "no"); } catch { /* not remembered */ }
    hideTexts(hidden);
  });

  let at = -1;
  const move = (step) => {
    const neighbour = one(step > 0 ? "a[rel=next]" : "a[rel=prev]");
    const items = all("tr[data-item]");
    if (!items.length) {
      if (neighbour) location.assign(neighbour.href);
      return;
    }
    at = Math.min(items.length - 1, Math.max(0, at + step));
    for (const item of items) item.classList.toggle("at", item === items[at]);
    const link = one("a", items[at]);
    link.focus({ preventScroll: true });
    items[at].scrollIntoView({ block: "nearest" });
  };

  const press = (selector) => {
    const found = one(selector);
    if (found) found.click();
    return Boolean(found);
  };

  const keys = {
    j: () => move(1),
    k: () => move(-1),
    u: () => press("[data-up]"),
    "/": () => one("input[type=search]")?.focus(),
    "?": () => one("#help")?.showModal(),
    p: () => press("button[value=pass]"),
    f: () => press("button[value=fail]"),
    n: () => press("a.later"),
    c: () => one("textarea[name=comment]")?.focus(),
  };
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
    if (typing && event.key === "Escape") event.target.blur();
    if (typing || !(event.key in keys) || one("dialog[open]")) return;
    event.preventDefault();
    keys[event.key]();
  });

  const help = one("#help-button");
  if (help) {
    help.hidden = false;
    help.addEventListener("click", () => one("#help").showModal());
  }
  hideTexts(areTextsHidden());
  localTimes();
  scrollers();
  listen();
  follow();
  document.documentElement.classList.add("ready");
})();
