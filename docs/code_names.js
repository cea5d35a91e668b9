// Blocks of code have a bar with a copy button each: landmarks need names of their own.
new MutationObserver(() => {
  document.querySelectorAll(".md-code__nav").forEach((bar, k) => {
    const name = `Code block ${k + 1}`;
    if (bar.getAttribute("aria-label") !== name) bar.setAttribute("aria-label", name);
  });
}).observe(document.body, { childList: true, subtree: true });
