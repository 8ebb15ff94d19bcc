/**
 * Move about in a figure: drag, ctrl and wheel, three buttons, or the keys + - 0 and the arrows while it has the focus.
 * Only the figure's viewBox changes; without ctrl the wheel scrolls the page as ever.
 */

interface Box {
  x: number;
  y: number;
  width: number;
  height: number;
}

const STEP = 1.25;
const MOST = 8;

export class PanZoom {
  private box: Box | null = null;
  private from: { x: number; y: number; box: Box; moved: boolean } | null = null;

  constructor(
    private readonly cell: HTMLElement,
    label: string,
  ) {
    cell.classList.add("v-zoomable");
    const bar = document.createElement("div");
    bar.className = "v-zoom";
    bar.append(
      button("+", `${label}: larger`, () => this.zoom(1 / STEP)),
      button("−", `${label}: smaller`, () => this.zoom(STEP)),
      button("⤢", `${label}: whole`, () => this.reset()),
    );
    cell.append(bar);
    cell.addEventListener("keydown", (event) => this.key(event));
    cell.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    cell.addEventListener("pointerdown", (event) => this.down(event));
    cell.addEventListener("pointermove", (event) => this.move(event));
    cell.addEventListener("pointerup", () => (this.from = null));
    cell.addEventListener("pointercancel", () => (this.from = null));
    cell.addEventListener("click", (event) => this.swallow(event), true);
  }

  private dragged = false;

  private get figure(): SVGSVGElement | null {
    return this.cell.querySelector("svg.v-figure");
  }

  private whole(figure: SVGSVGElement): Box {
    const width = Number(figure.getAttribute("width"));
    const height = Number(figure.getAttribute("height"));
    return { x: 0, y: 0, width, height };
  }

  private show(box: Box | null): void {
    const figure = this.figure;
    if (!figure) return;
    this.box = box;
    const { x, y, width, height } = box ?? this.whole(figure);
    figure.toggleAttribute("data-moved", box !== null);
    figure.setAttribute("viewBox", [x, y, width, height].map((value) => Math.round(value * 10) / 10).join(" "));
  }

  reset(): void {
    this.show(null);
  }

  /** Zoom by a factor (below 1: closer) around a point of the figure, or around the middle. */
  zoom(factor: number, at?: { x: number; y: number }): void {
    const figure = this.figure;
    if (!figure) return;
    const whole = this.whole(figure);
    const box = this.box ?? whole;
    const width = Math.min(Math.max(box.width * factor, whole.width / MOST), whole.width * 2);
    const scale = width / box.width;
    const point = at ?? { x: box.x + box.width / 2, y: box.y + box.height / 2 };
    this.show({
      x: point.x - (point.x - box.x) * scale,
      y: point.y - (point.y - box.y) * scale,
      width,
      height: box.height * scale,
    });
  }

  private pan(right: number, below: number): void {
    const figure = this.figure;
    if (!figure) return;
    const box = this.box ?? this.whole(figure);
    this.show({ ...box, x: box.x + right * box.width, y: box.y + below * box.height });
  }

  private key(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey || (event.target as Element).closest("input")) return;
    const moves: Record<string, () => void> = {
      "+": () => this.zoom(1 / STEP),
      "=": () => this.zoom(1 / STEP),
      "-": () => this.zoom(STEP),
      "0": () => this.reset(),
      ArrowLeft: () => this.pan(-0.1, 0),
      ArrowRight: () => this.pan(0.1, 0),
      ArrowUp: () => this.pan(0, -0.1),
      ArrowDown: () => this.pan(0, 0.1),
    };
    const act = moves[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  }

  private wheel(event: WheelEvent): void {
    const figure = this.figure;
    if (!figure || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    const seen = figure.getBoundingClientRect();
    const box = this.box ?? this.whole(figure);
    this.zoom(event.deltaY < 0 ? 1 / STEP : STEP, {
      x: box.x + ((event.clientX - seen.left) / (seen.width || 1)) * box.width,
      y: box.y + ((event.clientY - seen.top) / (seen.height || 1)) * box.height,
    });
  }

  private down(event: PointerEvent): void {
    const figure = this.figure;
    this.dragged = false;
    if (!figure || event.button !== 0 || !figure.contains(event.target as Node)) return;
    this.from = { x: event.clientX, y: event.clientY, box: this.box ?? this.whole(figure), moved: false };
  }

  private move(event: PointerEvent): void {
    const figure = this.figure;
    if (!this.from || !figure) return;
    const { box } = this.from;
    const right = event.clientX - this.from.x;
    const below = event.clientY - this.from.y;
    if (!this.from.moved && Math.hypot(right, below) < 4) return;
    this.from.moved = this.dragged = true;
    const scale = box.width / (figure.getBoundingClientRect().width || 1);
    this.show({ ...box, x: box.x - right * scale, y: box.y - below * scale });
  }

  /** The click that ends a drag opens nothing. */
  private swallow(event: Event): void {
    if (!this.dragged) return;
    this.dragged = false;
    event.stopPropagation();
  }
}

export function button(text: string, label: string, act: () => void): HTMLButtonElement {
  const element = document.createElement("button");
  element.type = "button";
  element.textContent = text;
  if (label !== text) element.setAttribute("aria-label", label);
  element.addEventListener("click", act);
  return element;
}
