// Opens links as dialogs; without this script they lead to pages of their own.
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

export function openDialog(path) {
  htmx.ajax("GET", path, { target: "#dialog-body", swap: "innerHTML" });
}
