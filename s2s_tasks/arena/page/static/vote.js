"use strict";

// What was played counts once, however often. The very end is seldom reported.
const ENOUGH = 0.9;
const TITLES = { instruction: "instruction", first: "answer A", second: "answer B" };
const STORED = "s2s-arena-shortcuts";

const form = document.querySelector("#vote");
const skip = document.querySelector("#skip");
const button = form.querySelector("button");
const hint = document.querySelector("#hint");
const back = document.querySelector("#back");
const live = document.querySelector("#live");
const shortcuts = document.querySelector("#shortcuts");
const players = [...document.querySelectorAll("audio")];
const criteria = [...form.querySelectorAll("[data-criterion]")];
let sent = false;

// Listening

function heard(player) {
  let played = 0;
  for (let index = 0; index < player.played.length; index += 1) {
    played += player.played.end(index) - player.played.start(index);
  }
  // Whoever comes back to a battle need not listen again.
  return Math.max(played, Number(form.elements[`heard_${player.id}`].value));
}

function isHeard(player) {
  return player.duration > 0 && heard(player) >= ENOUGH * player.duration;
}

function missing() {
  return players.filter((player) => player.id !== "instruction" && !isHeard(player));
}

function say(text) {
  hint.textContent = text;
  live.textContent = text;
}

function why(left) {
  const names = left.map((player) => TITLES[player.id]).join(" and ");
  return `Listen to ${names} to the end first: a bad ending is part of an answer.`;
}

function refresh() {
  const left = missing();
  const waits = left.length > 0;
  const changed = button.getAttribute("aria-disabled") !== String(waits);
  button.setAttribute("aria-disabled", String(waits));
  if (waits) hint.textContent = why(left);
  else if (changed) say("Both answers heard: you can vote.");
}

function state(player, text) {
  document.querySelector(`[data-state="${player.id}"]`).textContent = text;
}

function settle(player) {
  if (isHeard(player)) state(player, "heard");
  else if (player.currentTime > 0) state(player, "paused");
  player.closest(".card").classList.toggle("heard", isHeard(player));
  refresh();
}

function toggle(player) {
  if (player.paused) player.play().catch(() => {});
  else player.pause();
}

for (const player of players) {
  player.nextElementSibling.hidden = false;
  player.addEventListener("play", () => {
    players.filter((other) => other !== player).forEach((other) => other.pause());
    state(player, "playing");
  });
  for (const event of ["loadedmetadata", "pause", "ended"]) {
    player.addEventListener(event, () => settle(player));
  }
  player.addEventListener("error", () => {
    state(player, "does not play");
    say(`The ${TITLES[player.id]} does not play: skip this battle, and say so.`);
  });
}

// Voting

function mark(current) {
  criteria.forEach((one) => one.classList.toggle("current", one === current));
}

function choose(key) {
  const current = criteria.find((one) => one.classList.contains("current"));
  const choice = current && current.querySelector(`[data-key="${key}"]`);
  if (!choice) return false;
  choice.checked = true;
  const next = criteria[criteria.indexOf(current) + 1];
  // Focus leads, so that a screen reader says what is asked next and the page scrolls along.
  if (next) {
    (next.querySelector(":checked") || next.querySelector("input")).focus();
  } else {
    choice.focus();
    button.focus();
  }
  return true;
}

criteria.forEach((one) => one.addEventListener("focusin", () => mark(one)));
mark(criteria[0]);

form.addEventListener("submit", (event) => {
  const left = missing();
  if (left.length > 0 || sent) {
    event.preventDefault();
    if (left.length > 0) say(why(left));
    return;
  }
  sent = true;
});

for (const one of document.forms) {
  one.addEventListener("formdata", (event) => {
    for (const player of players) {
      event.formData.set(`heard_${player.id}`, heard(player).toFixed(2));
    }
  });
}

// A page that the browser kept shows what was voted on already.
window.addEventListener("pageshow", (event) => {
  if (event.persisted) window.location.reload();
});

// Keys

shortcuts.closest(".switch").hidden = false;
shortcuts.checked = localStorage.getItem(STORED) !== "off";
function showKeys() {
  form.classList.toggle("letters", shortcuts.checked);
}
shortcuts.addEventListener("change", () => {
  localStorage.setItem(STORED, shortcuts.checked ? "on" : "off");
  showKeys();
});
showKeys();

function act(key) {
  const player = players[["1", "2", "3"].indexOf(key)];
  if (player) toggle(player);
  else if (key === "s") {
    skip.open = true;
    skip.querySelector("input[type=radio]").focus();
  } else if (key === "p" && back) back.click();
  else return choose(key);
  return true;
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  const target = event.target;
  if (target.matches("input[type=text]")) return;
  if (event.key === "Enter") {
    if (target.matches("a, button, summary, audio") || skip.contains(target)) return;
    event.preventDefault();
    form.requestSubmit();
  } else if (shortcuts.checked && !event.repeat && act(event.key.toLowerCase())) {
    event.preventDefault();
  }
});

players.forEach(settle);
if (document.activeElement === document.body) document.querySelector("h1").focus();
// Screen readers tell what changes in this region, and not what a page has from the start.
const notice = document.querySelector(".notice");
setTimeout(() => {
  const parts = [live.dataset.place, notice && notice.textContent, live.textContent];
  live.textContent = parts.filter(Boolean).join(" ");
}, 300);
