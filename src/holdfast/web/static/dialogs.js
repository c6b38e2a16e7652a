// Questions open in a dialog; without this script their links lead to pages of their own.
export function watchDialogs() {
  const dialog = document.getElementById("dialog");
  if (!dialog) return;
  document.addEventListener("htmx:after:swap", (event) => {
    const target = event.detail?.ctx?.target ?? event.target;
    if (target?.id === "dialog-body" && !dialog.open) dialog.showModal();
  });
  document.addEventListener("click", (event) => {
    if (event.target.closest("[data-close]") || event.target === dialog) dialog.close();
    if (event.target === document.getElementById("keys")) event.target.close();
  });
}

export function ask(path) {
  htmx.ajax("GET", path, { target: "#dialog-body", swap: "innerHTML" });
}
