// Reviewing: shows one card, decides by its buttons (which the keys press), and has the next card
// ready. A decision is sent while the next card is already shown; if it is refused, its card
// comes back.
const area = document.getElementById("review");
const history = [];
let ahead = null;
let sending = Promise.resolve();

function card() {
  return area.querySelector(".linker-card");
}

function placeOf(element) {
  const { job, seq, score, version } = element.dataset;
  return { job: Number(job), seq: Number(seq), score, version: Number(version) };
}

function nextUrl(place) {
  const { state, low, high, at } = area.dataset;
  const query = new URLSearchParams({ state, low, high, score: place.score, job_id: place.job, seq: place.seq });
  return `${at}/review/next?${query}`;
}

async function fetchCard(url) {
  const reply = await fetch(url, { headers: { "HX-Request": "true" } });
  if (!reply.ok) throw new Error(`HTTP ${reply.status}`);
  return reply.text();
}

function lookAhead() {
  const current = card();
  ahead = current ? fetchCard(nextUrl(placeOf(current))) : null;
  ahead?.catch(() => {});
}

function show(html) {
  area.innerHTML = html;
  lookAhead();
}

function say(text) {
  const note = document.createElement("div");
  note.className = "note";
  note.append(Object.assign(document.createElement("span"), { textContent: text }));
  note.append(Object.assign(document.createElement("button"), { className: "close", type: "button", textContent: "×", ariaLabel: "Dismiss" }));
  document.getElementById("notes").replaceChildren(note);
}

function count(step) {
  for (const [id, by] of [["decided", step], ["left", -step]]) {
    const element = document.getElementById(id);
    element.textContent = Math.max(0, Number(element.textContent.replace(/\D/g, "")) + by).toLocaleString("en");
  }
  const share = document.getElementById("share");
  if (share) share.value += step;
}

async function send(place, body) {
  const reply = await fetch(`${area.dataset.api}/${place.job}/${place.seq}/decision`, {
    method: "PUT",
    headers: { "Content-Type": "application/json", "X-CSRF-Token": document.documentElement.dataset.csrf },
    body: JSON.stringify({ ...body, version: place.version }),
  });
  const answer = await reply.json();
  if (!reply.ok) throw Object.assign(new Error(answer.detail ?? answer.title ?? "refused"), { place });
  return answer;
}

async function advance() {
  const next = ahead ?? fetchCard(nextUrl(placeOf(card())));
  show(await next);
}

async function decide(body) {
  const current = card();
  if (!current) return;
  const place = placeOf(current);
  count(1);
  const sent = send(place, body);
  sending = sent.catch(() => {});
  const moved = advance().catch((error) => say(`The next entry could not be read: ${error.message}. Reload the page.`));
  try {
    const answer = await sent;
    history.push({ ...place, version: answer.version });
  } catch (error) {
    await moved;
    count(-1);
    say(error.message);
    await showAgain(place);
  }
}

async function showAgain(place) {
  show(await fetchCard(`${area.dataset.at}/review/${place.job}/${place.seq}`));
}

async function undo() {
  await sending;
  const last = history.pop();
  if (!last) {
    say("There is nothing to undo on this page.");
    return;
  }
  try {
    await send(last, { action: "undo" });
    count(-1);
  } catch (error) {
    say(error.message);
  }
  await showAgain(last);
}

// One act after the other: keys may come faster than cards.
let acts = Promise.resolve();
function act(step) {
  acts = acts.then(step).catch((error) => say(error.message));
}

document.addEventListener("click", (event) => {
  const accept = event.target.closest("#review [data-item]");
  if (accept) act(() => decide({ action: "accept", item: accept.dataset.item }));
  const button = event.target.closest("[data-act]");
  if (button?.dataset.act === "none") act(() => decide({ action: "none" }));
  if (button?.dataset.act === "skip") act(() => card() && advance());
  if (button?.dataset.act === "undo") act(undo);
});

document.getElementById("by-id")?.addEventListener("submit", (event) => {
  event.preventDefault();
  const input = event.target.elements.qid;
  const item = input.value.trim();
  if (!item) return;
  input.value = "";
  input.blur();
  act(() => decide({ action: "accept", item }));
});

lookAhead();
