import { beforeEach, describe, expect, it } from "vitest";
import { patch } from "../src/morph";

let box: HTMLElement;

beforeEach(() => {
  box = document.createElement("div");
  document.body.replaceChildren(box);
});

describe("patch", () => {
  it("keeps elements that are the same and changes what differs", () => {
    patch(box, "<table><tbody><tr><td>a</td><td>1</td></tr></tbody></table>");
    const before = box.querySelector("td");

    patch(box, "<table><tbody><tr><td>a</td><td>2</td></tr><tr><td>b</td></tr></tbody></table>");

    expect(box.querySelector("td")).toBe(before);
    expect(box.textContent).toBe("a2b");
  });

  it("leaves a section open or closed as the reader had it", () => {
    patch(box, "<details open><summary>pods</summary>1</details>");
    const section = box.querySelector("details") as HTMLDetailsElement;
    section.open = false;

    patch(box, "<details open><summary>pods</summary>2</details>");

    expect(section.open).toBe(false);
    expect(section.textContent).toBe("pods2");
  });

  it("moves elements that have a key instead of making them anew", () => {
    patch(box, '<p data-key="a">a</p><p data-key="b">b</p>');
    const [a, b] = Array.from(box.children);

    patch(box, '<p data-key="b">b</p><p data-key="c">c</p><p data-key="a">a</p>');

    expect(Array.from(box.children).map((child) => child.textContent)).toEqual(["b", "c", "a"]);
    expect(box.children[0]).toBe(b);
    expect(box.children[2]).toBe(a);
  });

  it("keeps the part of a figure that the reader looks at", () => {
    patch(box, '<svg viewBox="0 0 10 10"></svg>');
    const figure = box.querySelector("svg") as SVGElement;
    patch(box, '<svg viewBox="0 0 20 20"></svg>');
    expect(figure.getAttribute("viewBox")).toBe("0 0 20 20");
    figure.setAttribute("data-moved", "");
    figure.setAttribute("viewBox", "5 5 5 5");

    patch(box, '<svg viewBox="0 0 30 30"></svg>');

    expect(figure.getAttribute("viewBox")).toBe("5 5 5 5");
  });

  it("takes in neither scripts nor handlers", () => {
    patch(box, '<p onclick="x()">a</p><script>x()</script><div><script>y()</script><b onmouseover="z()">b</b></div>');
    patch(box, '<p onclick="x()">a</p><div><b onmouseover="z()">c</b></div>');

    expect(box.querySelector("script")).toBeNull();
    expect(box.innerHTML).not.toContain("onclick");
    expect(box.innerHTML).not.toContain("onmouseover");
  });

  it("lets the clock keep the text of a running time", () => {
    patch(box, '<time data-since="1"></time>');
    (box.querySelector("time") as Element).textContent = "5s";

    patch(box, '<time data-since="1"></time>');

    expect(box.textContent).toBe("5s");
  });

  it("empties", () => {
    patch(box, "<p>a</p>b");
    patch(box, "");

    expect(box.childNodes).toHaveLength(0);
  });
});
