// Shows each state of a measurement that the server sends, and at the end its report.

const ENDED = "trueload has ended, or cannot be reached. This is the last state that it sent.";

function say(text) {
  document.getElementById("said").textContent = text;
}

function show({ title, html }) {
  say("");
  document.title = title;
  document.getElementById("title").textContent = title;
  document.getElementById("state").innerHTML = html; // the server has escaped every text in it
}

async function follow() {
  // Not an EventSource, which does not tell why it was refused.
  const answer = await fetch("events");
  if (!answer.ok) return say(await answer.text());
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  for (let text = "", part; !(part = await reader.read()).done; ) {
    const events = (text + part.value).split("\n\n");
    text = events.pop();
    if (!events.length) continue;
    const state = JSON.parse(events.at(-1).slice("data: ".length));
    show(state);
    if (state.end) {
      await reader.cancel();
      return state.end === "report" ? location.replace("report") : say(state.end);
    }
  }
  say(ENDED);
}

follow().catch(() => say(ENDED));
