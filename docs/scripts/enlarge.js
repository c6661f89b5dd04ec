/* Drawings fit the column; a button opens one at its own size, in a dialog that scrolls. */
"use strict";

function enlarge(figure) {
  const svg = figure.querySelector("svg");
  const dialog = document.createElement("dialog");
  const place = document.createComment("");
  const close = document.createElement("button");
  dialog.className = "drawing-large";
  dialog.setAttribute("aria-label", "Drawing, enlarged");
  close.type = "button";
  close.className = "drawing-close";
  close.textContent = "Close";
  svg.replaceWith(place); // moved, not copied: its parts keep their ids
  dialog.append(close, svg);
  document.body.append(dialog);
  close.addEventListener("click", () => dialog.close());
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close();
  });
  dialog.addEventListener("close", () => {
    place.replaceWith(svg);
    dialog.remove();
    figure.querySelector("button").focus();
  });
  dialog.showModal();
}

for (const figure of document.querySelectorAll("figure.drawing")) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "drawing-open";
  button.textContent = "Enlarge";
  button.addEventListener("click", () => enlarge(figure));
  figure.prepend(button);
}
