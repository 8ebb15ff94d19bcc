/**
 * A live view of vcnb: mounts the sections that the kernel has rendered, replaces those that change, sends clicks back.
 *
 * Everything that is drawn comes as markup, one trait for each section, so that the newest state is always the model's and nothing
 * depends on messages that may be missed. Nothing is written to the model from here: clicks are messages.
 */
import { Clock } from "./clock";
import { patch } from "./morph";
import { Output } from "./output";
import { PanZoom } from "./panzoom";
import { keepWhenSaved } from "./saved";
import { Toolbar } from "./toolbar";
import type { Model, Send, Verb } from "./types";

interface Context {
  model: Model;
  el: HTMLElement;
}

class View {
  private readonly cells = new Map<string, HTMLElement>();
  private readonly changed = new Set<string>();
  private readonly clock: Clock;
  private readonly toolbar: Toolbar;
  private readonly output: Output | null;
  private readonly notice = document.createElement("div");
  private readonly stops: (() => void)[] = [];
  private frame = 0;

  constructor(
    private readonly model: Model,
    private readonly root: HTMLElement,
  ) {
    const send: Send = (message) => model.send(message);
    root.classList.add("vcnb");
    root.setAttribute("role", "region");
    root.setAttribute("data-lm-suppress-shortcuts", "true");
    this.clock = new Clock(root);
    this.toolbar = new Toolbar(send);
    this.output = model.get<boolean>("logs") ? new Output(send) : null;
    this.notice.className = "v-notice";
    this.notice.setAttribute("role", "status");
    const keys = model.get<string[]>("sections");
    root.replaceChildren(...keys.map((key) => this.cell(key)));
    const opened = this.cells.get("opened"); // the buttons stand by the job that they are for
    if (opened) opened.before(this.toolbar.element, this.notice);
    else this.cells.get(keys[0] ?? "")?.after(this.toolbar.element, this.notice);
    if (this.output) root.append(this.output.element);
    root.addEventListener("click", (event) => this.click(event, send));
    root.addEventListener("keydown", (event) => this.key(event, send));
    for (const key of keys) this.follow(`cell_${key}`);
    for (const name of ["verbs", "job", "log", "log_open", "notice", "label", "now"]) this.follow(name);
    this.draw();
    send({ mounted: true });
  }

  private cell(key: string): HTMLElement {
    const cell = document.createElement("div");
    const body = document.createElement("div");
    cell.className = `v-cell v-${key}`;
    cell.append(body);
    this.cells.set(key, cell);
    this.changed.add(`cell_${key}`);
    if (this.model.get<string[]>("zoom").includes(key)) new PanZoom(cell, key);
    return cell;
  }

  private follow(name: string): void {
    const changed = (): void => {
      this.changed.add(name);
      if (!this.frame) this.frame = requestAnimationFrame(() => this.draw());
    };
    this.changed.add(name);
    this.model.on(`change:${name}`, changed);
    this.stops.push(() => this.model.off(`change:${name}`, changed));
  }

  private draw(): void {
    this.frame = 0;
    const changed = new Set(this.changed);
    this.changed.clear();
    for (const [key, cell] of this.cells) {
      if (!changed.has(`cell_${key}`)) continue;
      const html = this.model.get<string>(`cell_${key}`);
      cell.hidden = !html;
      patch(cell.firstElementChild as Element, html);
    }
    if (changed.has("now")) this.clock.set(this.model.get<number>("now"));
    if (changed.has("label")) this.root.setAttribute("aria-label", this.model.get<string>("label"));
    if (changed.has("verbs") || changed.has("job")) {
      this.toolbar.update(this.model.get<string>("job"), this.model.get<Verb[]>("verbs"));
    }
    if (changed.has("notice")) {
      this.notice.textContent = this.model.get<string>("notice");
      this.toolbar.rest();
    }
    if (this.output) {
      if (changed.has("log_open")) this.output.open(this.model.get<boolean>("log_open"));
      if (changed.has("log")) this.output.update(this.model.get<string>("log"));
    }
    this.clock.tick();
  }

  private click(event: Event, send: Send): void {
    const target = event.target as Element;
    const opened = target.closest("[data-open]");
    if (opened) send({ open: opened.getAttribute("data-open") ?? "" });
    else if (target.closest("[data-close]")) send({ close: true });
  }

  private key(event: KeyboardEvent, send: Send): void {
    if (event.key !== "Enter" && event.key !== " ") return;
    const target = event.target as Element;
    if (target.localName === "button" || !target.hasAttribute("data-open")) return;
    event.preventDefault();
    send({ open: target.getAttribute("data-open") ?? "" });
  }

  stop(): void {
    if (this.frame) cancelAnimationFrame(this.frame);
    this.clock.stop();
    this.toolbar.stop();
    for (const stop of this.stops) stop();
  }
}

export default {
  render({ model, el }: Context): () => void {
    const view = new View(model, el);
    keepWhenSaved(model.get("layout"));
    return () => view.stop();
  },
};
