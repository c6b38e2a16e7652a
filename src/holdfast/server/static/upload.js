// Uploads files with progress; the next page shows a preview before anything starts.
export function takeFiles() {
  const zone = document.querySelector("[data-drop]");
  if (!zone) return;
  const input = zone.querySelector("input[type=file]");
  input.addEventListener("change", () => sendAll(zone, [...input.files]));
  zone.addEventListener("dragover", (event) => {
    event.preventDefault();
    zone.classList.add("over");
  });
  zone.addEventListener("dragleave", () => zone.classList.remove("over"));
  zone.addEventListener("drop", (event) => {
    event.preventDefault();
    zone.classList.remove("over");
    sendAll(zone, [...event.dataTransfer.files]);
  });
}

// Shows which fields have no column yet, after each choice.
export function watchColumns() {
  const warning = document.querySelector("[data-inputs]");
  if (!warning) return;
  const choices = [...document.querySelectorAll("#new-job select[name^='name:']")];
  const showMissing = () => {
    const taken = choices.map((choice) => choice.value);
    const missing = warning.dataset.inputs.split("\n").filter((name) => name && !taken.includes(name));
    warning.querySelector("[data-missing]").textContent = missing.join(", ");
    warning.hidden = !missing.length;
  };
  for (const choice of choices) choice.addEventListener("change", showMissing);
  if (choices.length) showMissing(); // something may have been chosen before this ran
}

// One after the other: a single table, or several images.
async function sendAll(zone, files) {
  const stored = [];
  for (const [index, file] of files.entries()) {
    const which = files.length > 1 ? ` (${index + 1} of ${files.length})` : "";
    const reply = await send(zone, file, which);
    if (!reply) return;
    stored.push(reply);
  }
  if (!stored.length) return;
  const areImages = stored.every((file) => file.detected.format === "image");
  if (areImages && zone.dataset.drop.startsWith("into=")) {
    showMessage(zone, "A standing job takes no images. Start a job with them: they are stored.");
  } else if (areImages) {
    location.assign(`/new/images?files=${stored.map((file) => file.id).join(",")}&${zone.dataset.drop}`);
  } else if (stored.length === 1) {
    location.assign(`/new/files/${stored[0].id}?${zone.dataset.drop}`);
  } else {
    showMessage(zone, "A job takes several files only if all of them are images. The files are stored: reload the page and choose one below.");
  }
}

function send(zone, file, which) {
  const progress = zone.querySelector("progress");
  if (file.size > Number(zone.dataset.max)) {
    showMessage(zone, `${file.name} is too large; the limit is ${Number(zone.dataset.max).toLocaleString("en-US")} bytes.`);
    return null;
  }
  const form = new FormData();
  form.append("file", file);
  const request = new XMLHttpRequest();
  request.open("POST", "/api/files");
  request.setRequestHeader("X-CSRF-Token", document.documentElement.dataset.csrf);
  request.upload.addEventListener("progress", (event) => {
    progress.value = (100 * event.loaded) / event.total;
    zone.querySelector("[data-message]").textContent =
      event.loaded < event.total ? `Uploading ${file.name}${which} …` : `Reading ${file.name}${which} …`;
  });
  progress.hidden = false;
  return new Promise((answer) => {
    request.addEventListener("load", () => answer(readReply(zone, request)));
    request.addEventListener("error", () => answer(showMessage(zone, "The server cannot be reached. Nothing was stored.")));
    request.send(form);
  });
}

function readReply(zone, request) {
  if (request.status === 401) {
    location.assign("/login?next=/new");
    return null;
  }
  const reply = JSON.parse(request.responseText);
  return request.status === 201 ? reply : showMessage(zone, sentences(reply));
}

// As on pages: some details end with a full stop, others do not.
function sentences({ detail, hint }) {
  return `${detail}${detail.endsWith(".") ? "" : "."} ${hint ?? ""}`.trim();
}

function showMessage(zone, text) {
  zone.querySelector("progress").hidden = true;
  zone.querySelector("[data-message]").textContent = text;
  return null;
}
