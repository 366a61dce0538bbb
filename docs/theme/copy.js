// A button on every block of code that copies it: of a session at a prompt the commands alone.
"use strict";
document.addEventListener("DOMContentLoaded", () => {
  const PROMPTS = [["highlight-console", "$ ", "> "], ["highlight-pycon", ">>> ", "... "]];

  const textOf = (block) => {
    const text = block.querySelector("pre").textContent;
    const session = PROMPTS.find(([kind]) => block.closest(`.${kind}`));
    if (!session) return text;
    const [, prompt, more] = session;
    const kept = [];
    let goesOn = false;
    for (const line of text.split("\n")) {
      const begins = line.startsWith(prompt);
      const follows = session[0] === "highlight-pycon" ? line.startsWith(more) : goesOn;
      if (begins) kept.push(line.slice(prompt.length));
      else if (follows) kept.push(line.startsWith(more) ? line.slice(more.length) : line);
      goesOn = (begins || goesOn) && line.endsWith("\\");
    }
    return kept.join("\n") + "\n";
  };

  for (const block of document.querySelectorAll("div.highlight")) {
    const button = document.createElement("button");
    button.className = "copy";
    button.type = "button";
    button.textContent = "copy";
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(textOf(block));
        button.textContent = "copied";
      } catch {
        getSelection().selectAllChildren(block.querySelector("pre"));
        button.textContent = "selected";
      }
      setTimeout(() => (button.textContent = "copy"), 2000);
    });
    block.append(button);
  }
});
