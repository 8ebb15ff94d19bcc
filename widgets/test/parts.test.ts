import { afterEach, describe, expect, it, vi } from "vitest";
import { Clock, span } from "../src/clock";
import { PanZoom } from "../src/panzoom";

afterEach(() => vi.useRealTimers());

describe("span", () => {
  it.each([
    [-1, "0s"],
    [0.123, "0.12s"],
    [7.31, "7.3s"],
    [62, "62s"],
    [190, "3m10s"],
    [3600, "1h"],
    [18420, "5h7m"],
    [180000, "2d2h"],
  ])("says %d seconds as the kernel does", (seconds, said) => {
    expect(span(seconds)).toBe(said);
  });
});

describe("a clock", () => {
  it("counts on from the kernel's time", () => {
    vi.useFakeTimers({ now: 1_000_000 });
    const box = document.createElement("div");
    box.innerHTML = '<time data-since="2000"></time>';
    const clock = new Clock(box);

    clock.set(2100);
    clock.tick();
    expect(box.textContent).toBe("100s");
    vi.advanceTimersByTime(65_000);
    expect(box.textContent).toBe("2m45s");
    clock.stop();
    vi.advanceTimersByTime(65_000);

    expect(box.textContent).toBe("2m45s");
  });
});

describe("a figure", () => {
  function figure(): { cell: HTMLElement; box: () => string | null } {
    const cell = document.createElement("div");
    cell.innerHTML = '<div><svg class="v-figure" width="100" height="50" viewBox="0 0 100 50"></svg></div>';
    document.body.replaceChildren(cell);
    new PanZoom(cell, "graph");
    return { cell, box: () => (cell.querySelector("svg") as Element).getAttribute("viewBox") };
  }

  it("grows, shrinks, moves and comes back by keys", () => {
    const { cell, box } = figure();
    const press = (key: string): boolean => cell.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));

    press("+");
    expect(box()).toBe("10 5 80 40");
    press("ArrowRight");
    expect(box()).toBe("18 5 80 40");
    press("0");

    expect(box()).toBe("0 0 100 50");
  });

  it("has buttons with names, and bounds", () => {
    const { cell, box } = figure();
    const larger = cell.querySelector('[aria-label="graph: larger"]') as HTMLButtonElement;

    for (let count = 0; count < 40; count += 1) larger.click();

    expect(box()?.split(" ")[2]).toBe("12.5");
  });

  it("leaves the wheel to the page unless ctrl is held", () => {
    const { cell, box } = figure();
    const svg = cell.querySelector("svg") as Element;

    svg.dispatchEvent(new WheelEvent("wheel", { deltaY: -1, bubbles: true, cancelable: true }));
    expect(box()).toBe("0 0 100 50");
    const held = new WheelEvent("wheel", { deltaY: -1, bubbles: true, cancelable: true });
    Object.defineProperty(held, "ctrlKey", { value: true }); // happy-dom's WheelEvent knows no modifiers
    svg.dispatchEvent(held);

    expect(box()).not.toBe("0 0 100 50");
  });
});
