import type { Send } from "./types";

/** What the pods write: the newest lines, a filter, and staying at the end while the reader is there. */
export class Output {
  readonly element = document.createElement("details");
  private readonly lines = document.createElement("pre");
  private readonly filter = document.createElement("input");
  private readonly note = document.createElement("span");
  private text = "";
  private known = false;

  constructor(send: Send) {
    const title = document.createElement("summary");
    title.textContent = "output";
    this.filter.type = "search";
    this.filter.placeholder = "filter: text or pod";
    this.filter.setAttribute("aria-label", "show only output lines with this text");
    this.filter.addEventListener("input", () => this.draw());
    this.note.className = "v-note";
    this.lines.tabIndex = 0;
    this.lines.setAttribute("role", "log");
    this.lines.setAttribute("aria-label", "output of the pods");
    this.element.className = "v-output";
    this.element.append(title, this.filter, this.note, this.lines);
    this.element.addEventListener("toggle", () => {
      if (this.element.open === this.known) return;
      this.known = this.element.open;
      send({ log: this.known });
    });
  }

  /** Opened by the kernel's wish, which is not told back to it. */
  open(wanted: boolean): void {
    this.known = wanted;
    if (this.element.open !== wanted) this.element.open = wanted;
  }

  update(text: string): void {
    if (text === this.text) return;
    this.text = text;
    this.draw();
  }

  private draw(): void {
    const all = this.text ? this.text.split("\n") : [];
    const wanted = this.filter.value.toLowerCase();
    const shown = wanted ? all.filter((line) => line.toLowerCase().includes(wanted)) : all;
    const atEnd = this.lines.scrollTop + this.lines.clientHeight >= this.lines.scrollHeight - 8;
    this.lines.textContent = shown.join("\n") || (all.length ? "" : "nothing yet");
    this.note.textContent = wanted ? `${shown.length} of ${all.length} lines` : "";
    if (atEnd) this.lines.scrollTop = this.lines.scrollHeight;
  }
}
