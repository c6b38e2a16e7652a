// Adding a dataset: the file is stored first; the next page shows its columns.
async function answered(reply) {
  const body = await reply.json();
  if (!reply.ok) throw new Error([body.detail ?? body.title, body.hint].filter(Boolean).join(" "));
  return body;
}

async function store(form) {
  const headers = { "X-CSRF-Token": document.documentElement.dataset.csrf };
  const upload = new FormData();
  upload.append("file", form.elements.file.files[0]);
  const file = await answered(await fetch("/api/files", { method: "POST", headers, body: upload }));
  location.assign(`${form.dataset.at}/datasets/${file.id}`);
}

document.querySelector(".linker-dataset")?.addEventListener("submit", async (event) => {
  event.preventDefault();
  const form = event.target;
  const problem = form.querySelector(".problem");
  const button = form.querySelector("button");
  button.disabled = true;
  problem.hidden = true;
  try {
    await store(form);
  } catch (error) {
    problem.textContent = error.message;
    problem.hidden = false;
  } finally {
    button.disabled = false;
  }
});

// Only some roles are about a property.
for (const cell of document.querySelectorAll(".linker-columns [data-column]")) {
  const role = cell.querySelector("select");
  const property = cell.querySelector("input");
  const choose = () => {
    const wanted = ["date", "identifier", "property"].includes(role.value);
    property.hidden = !wanted;
    property.required = wanted;
  };
  role.addEventListener("change", choose);
  choose();
}
