// Names for screen readers that the theme lacks: of the buttons that open a part of the sidebar,
// and of the search button, whose label has only a part of its visible text.
document.addEventListener("DOMContentLoaded", () => {
  for (const button of document.querySelectorAll("li.has-children > details > summary"))
    button.ariaLabel = `Pages of ${button.closest("li").querySelector("a").textContent}`;
  for (const button of document.querySelectorAll(".search-button-field"))
    button.ariaLabel = button.textContent.trim().replace(/\s+/g, " ");
});
