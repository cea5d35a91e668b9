// Blocks of code have a bar with a copy button each: landmarks need names of their own.
new MutationObserver(() => {
  document.querySelectorAll(".md-code__nav").forEach((bar, k) => {
    const name = `Code block ${k + 1}`;
    if (bar.getAttribute("aria-label") !== name) bar.setAttribute("aria-label", name);
  });
}).observe(document.body, { childList: true, subtree: true });
// Names in tables break after a dot, an underscore or a bracket rather than within a word.
for (const code of document.querySelectorAll("td code")) {
  if (code.childElementCount) continue;
  const parts = code.textContent.split(/(?<=[._/(])(?=\w)/);
  code.replaceChildren(...parts.flatMap((part, k) => (k ? [document.createElement("wbr"), part] : [part])));
}
