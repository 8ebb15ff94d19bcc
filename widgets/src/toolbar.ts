import { button } from "./panzoom";
import type { Send, Verb } from "./types";

/** The buttons of a job. What cannot be undone is asked about first, in place; Escape says no. */
export class Toolbar {
  readonly element = document.createElement("div");
  private shown = "";
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly send: Send) {
    this.element.className = "v-bar";
    this.element.setAttribute("role", "toolbar");
    this.element.addEventListener("keydown", (event) => this.arrows(event));
  }

  update(job: string, verbs: Verb[]): void {
    const wanted = JSON.stringify([job, verbs]);
    if (wanted === this.shown) return;
    this.shown = wanted;
    this.draw(job, verbs);
  }

  private draw(job: string, verbs: Verb[]): void {
    const focused = this.element.contains(document.activeElement)
      ? (document.activeElement as HTMLElement).dataset.do
      : undefined;
    this.element.hidden = verbs.length === 0;
    this.element.setAttribute("aria-label", `actions on job ${job}`);
    this.element.replaceChildren(
      ...verbs.map((verb) => {
        const made = button(verb.label, verb.label, () =>
          verb.confirm ? this.ask(job, verb, verbs) : this.act(job, verb, verbs),
        );
        made.dataset.do = verb.do;
        return made;
      }),
    );
    if (focused) this.focus(focused);
  }

  private focus(verb: string): void {
    const all = Array.from(this.element.querySelectorAll("button"));
    (all.find((one) => one.dataset.do === verb) ?? all[0])?.focus();
  }

  private ask(job: string, verb: Verb, verbs: Verb[]): void {
    const question = document.createElement("span");
    question.textContent = verb.confirm ?? "";
    const back = (): void => {
      this.draw(job, verbs);
      this.focus(verb.do);
    };
    const yes = button("Yes", `yes: ${verb.label}`, () => this.act(job, verb, verbs));
    const no = button("No", "no", back);
    yes.className = "v-danger";
    const asked = document.createElement("span");
    asked.setAttribute("role", "group");
    asked.append(question, yes, no);
    asked.addEventListener("keydown", (event) => {
      if (event.key === "Escape") back();
    });
    this.element.replaceChildren(asked);
    no.focus();
  }

  /** Sent once; the buttons rest until the kernel says what came of it, at most three seconds. */
  private act(job: string, verb: Verb, verbs: Verb[]): void {
    this.send({ do: verb.do, job });
    this.draw(job, verbs);
    for (const one of Array.from(this.element.querySelectorAll("button"))) one.disabled = true;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.rest(), 3000);
  }

  rest(): void {
    clearTimeout(this.timer);
    for (const one of Array.from(this.element.querySelectorAll("button"))) one.disabled = false;
  }

  private arrows(event: KeyboardEvent): void {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const all = Array.from(this.element.querySelectorAll("button"));
    const at = all.indexOf(document.activeElement as HTMLButtonElement);
    if (at < 0) return;
    event.preventDefault();
    all[(at + step + all.length) % all.length]?.focus();
  }

  stop(): void {
    clearTimeout(this.timer);
  }
}
