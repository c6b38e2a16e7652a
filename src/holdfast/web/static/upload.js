// Files are sent as they are, with their progress; what is in them is shown before anything starts.
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

// What the pipeline would miss is told anew with each choice.
export function watchColumns() {
  const told = document.querySelector("[data-inputs]");
  if (!told) return;
  const choices = [...document.querySelectorAll("#order select[name^='name:']")];
  const tell = () => {
    const taken = choices.map((choice) => choice.value);
    const missing = told.dataset.inputs.split("\n").filter((name) => name && !taken.includes(name));
    told.querySelector("[data-missing]").textContent = missing.join(", ");
    told.hidden = !missing.length;
  };
  for (const choice of choices) choice.addEventListener("change", tell);
  if (choices.length) tell(); // somebody may have chosen before this ran
}

// One after the other: a table by itself, or images together.
async function sendAll(zone, files) {
  const kept = [];
  for (const [index, file] of files.entries()) {
    const which = files.length > 1 ? ` (${index + 1} of ${files.length})` : "";
    const reply = await send(zone, file, which);
    if (!reply) return;
    kept.push(reply);
  }
  if (!kept.length) return;
  const pipeline = `pipeline=${encodeURIComponent(zone.dataset.drop)}`;
  if (kept.every((each) => each.detected.format === "image")) {
    location.assign(`/new/images?files=${kept.map((each) => each.id).join(",")}&${pipeline}`);
  } else if (kept.length === 1) {
    location.assign(`/new/files/${kept[0].id}?${pipeline}`);
  } else {
    tell(zone, "Several files make a job only if all of them are images. They are stored: choose one below.");
  }
}

function send(zone, file, which) {
  const progress = zone.querySelector("progress");
  if (file.size > Number(zone.dataset.most)) {
    tell(zone, `${file.name} is too large: at most ${Number(zone.dataset.most).toLocaleString("en-US")} bytes.`);
    return null;
  }
  const form = new FormData();
  form.append("file", file);
  const request = new XMLHttpRequest();
  request.open("POST", "/api/files");
  request.setRequestHeader("X-CSRF-Token", document.documentElement.dataset.csrf);
  request.upload.addEventListener("progress", (event) => {
    progress.value = (100 * event.loaded) / event.total;
    zone.querySelector("[data-told]").textContent =
      event.loaded < event.total ? `Sending ${file.name}${which} …` : `Looking into ${file.name}${which} …`;
  });
  progress.hidden = false;
  return new Promise((answer) => {
    request.addEventListener("load", () => answer(answered(zone, request)));
    request.addEventListener("error", () => answer(tell(zone, "The server cannot be reached. Nothing was kept.")));
    request.send(form);
  });
}

function answered(zone, request) {
  if (request.status === 401) {
    location.assign("/login?next=/new");
    return null;
  }
  const reply = JSON.parse(request.responseText);
  return request.status === 201 ? reply : tell(zone, `${reply.detail}. ${reply.hint ?? ""}`);
}

function tell(zone, text) {
  zone.querySelector("progress").hidden = true;
  zone.querySelector("[data-told]").textContent = text;
  return null;
}
