// Adding a dataset: a file and its mapping in one request.
async function answered(reply) {
  const body = await reply.json();
  if (!reply.ok) throw new Error([body.detail ?? body.title, body.hint].filter(Boolean).join(" "));
  return body;
}

async function add(form) {
  const headers = { "X-CSRF-Token": document.documentElement.dataset.csrf };
  const upload = new FormData();
  upload.append("mapping", form.elements.mapping.value);
  upload.append("file", form.elements.file.files[0]);
  const path = `/api/projects/${form.dataset.project}/datasets`;
  await answered(await fetch(path, { method: "POST", headers, body: upload }));
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
