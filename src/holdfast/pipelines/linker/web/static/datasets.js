// Adding a dataset: stores the file, then adds it to the project.
async function answered(reply) {
  const body = await reply.json();
  if (!reply.ok) throw new Error([body.detail ?? body.title, body.hint].filter(Boolean).join(" "));
  return body;
}

async function add(form) {
  const headers = { "X-CSRF-Token": document.documentElement.dataset.csrf };
  const text = form.elements.mapping.value.trim();
  const mapping = text ? JSON.parse(text) : null;
  const upload = new FormData();
  upload.append("file", form.elements.file.files[0]);
  const file = await answered(await fetch("/api/files", { method: "POST", headers, body: upload }));
  await answered(await fetch(`/api/projects/${form.dataset.project}/datasets`, {
    method: "POST",
    headers: { ...headers, "Content-Type": "application/json" },
    body: JSON.stringify({ fileId: file.id, mapping }),
  }));
  location.reload();
}

document.querySelector(".linker-dataset")?.addEventListener("submit", async (event) => {
  event.preventDefault();
  const form = event.target;
  const problem = form.querySelector(".problem");
  const button = form.querySelector("button");
  button.disabled = true;
  problem.hidden = true;
  try {
    await add(form);
  } catch (error) {
    problem.textContent = error.message;
    problem.hidden = false;
  } finally {
    button.disabled = false;
  }
});
