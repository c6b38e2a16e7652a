// A file is sent as it is, with its progress; what is in it is shown before anything starts.
export function takeFiles() {
  const zone = document.querySelector("[data-drop]");
  if (!zone) return;
  const input = zone.querySelector("input[type=file]");
  input.addEventListener("change", () => input.files[0] && send(zone, input.files[0]));
  zone.addEventListener("dragover", (event) => {
    event.preventDefault();
    zone.classList.add("over");
  });
  zone.addEventListener("dragleave", () => zone.classList.remove("over"));
  zone.addEventListener("drop", (event) => {
    event.preventDefault();
    zone.classList.remove("over");
    const [file] = event.dataTransfer.files;
    if (file) send(zone, file);
  });
}

function send(zone, file) {
  const told = zone.querySelector("[data-told]");
  const progress = zone.querySelector("progress");
  if (file.size > Number(zone.dataset.most)) {
    told.textContent = `${file.name} is too large: at most ${Number(zone.dataset.most).toLocaleString("en-US")} bytes.`;
    return;
  }
  const form = new FormData();
  form.append("file", file);
  const request = new XMLHttpRequest();
  request.open("POST", "/api/files");
  request.setRequestHeader("X-CSRF-Token", document.documentElement.dataset.csrf);
  request.upload.addEventListener("progress", (event) => {
    progress.value = (100 * event.loaded) / event.total;
    told.textContent = event.loaded < event.total ? `Sending ${file.name} …` : "Looking into it …";
  });
  request.addEventListener("load", () => answered(zone, request));
  request.addEventListener("error", () => (told.textContent = "The server cannot be reached. Nothing was kept."));
  progress.hidden = false;
  request.send(form);
}

function answered(zone, request) {
  if (request.status === 401) {
    location.assign("/login?next=/new");
    return;
  }
  const reply = JSON.parse(request.responseText);
  if (request.status === 201) {
    location.assign(`/new/files/${reply.id}?pipeline=${encodeURIComponent(zone.dataset.drop)}`);
    return;
  }
  zone.querySelector("progress").hidden = true;
  zone.querySelector("[data-told]").textContent = `${reply.detail}. ${reply.hint ?? ""}`;
}
