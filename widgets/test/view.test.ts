import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import widget from "../src/index";
import { frame, jobModel, type FakeModel } from "./model";

let el: HTMLElement;
let stop: () => void = () => undefined;

function show(model: FakeModel): void {
  stop = widget.render({ model, el });
}

function button(name: string): HTMLButtonElement {
  const found = Array.from(el.querySelectorAll("button")).find(
    (one) => (one.getAttribute("aria-label") ?? one.textContent) === name,
  );
  if (!found) throw new Error(`no button ${name}`);
  return found;
}

beforeEach(() => {
  el = document.createElement("div");
  document.body.replaceChildren(el);
});

afterEach(() => {
  stop();
  vi.useRealTimers();
});

describe("a view", () => {
  it("mounts the sections in their order, says so once, and has a name", () => {
    const model = jobModel({ cell_pods: "<p>pods</p>" });
    show(model);

    expect(Array.from(el.querySelectorAll(".v-cell")).map((cell) => cell.textContent)).toEqual(["train", "pods"]);
    expect(el.getAttribute("aria-label")).toBe("job train, Running");
    expect(model.sent).toEqual([{ mounted: true }]);
  });

  it("replaces only the section that changed, once a frame", async () => {
    const model = jobModel({ cell_pods: "<p>pods</p>" });
    show(model);
    const pods = el.querySelector(".v-pods p");
    const seen = vi.fn();
    new MutationObserver(seen).observe(el.querySelector(".v-pods") as Element, { childList: true, subtree: true });

    model.set({ cell_head: "<b>a</b>" });
    model.set({ cell_head: "<b>b</b>" });
    await frame();

    expect(el.querySelector(".v-head")?.textContent).toBe("b");
    expect(el.querySelector(".v-pods p")).toBe(pods);
    expect(seen).not.toHaveBeenCalled();
  });

  it("hides a section that has nothing to show", async () => {
    const model = jobModel();
    show(model);
    expect((el.querySelector(".v-pods") as HTMLElement).hidden).toBe(true);

    model.set({ cell_pods: "<p>pods</p>" });
    await frame();

    expect((el.querySelector(".v-pods") as HTMLElement).hidden).toBe(false);
  });

  it("sends the verb with the job's name", () => {
    const model = jobModel();
    show(model);

    button("Suspend").click();

    expect(model.sent.at(-1)).toEqual({ do: "suspend", job: "default/train" });
    expect(button("Suspend").disabled).toBe(true);
  });

  it("asks before it deletes, and Escape says no", () => {
    const model = jobModel();
    show(model);

    button("Delete").click();
    expect(el.textContent).toContain("Delete job train with its pods?");
    document.activeElement?.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape", bubbles: true }));
    expect(model.sent).toHaveLength(1);
    button("Delete").click();
    button("yes: Delete").click();

    expect(model.sent.at(-1)).toEqual({ do: "delete", job: "default/train" });
  });

  it("lets the buttons act again when the kernel answers", async () => {
    const model = jobModel();
    show(model);
    button("Suspend").click();

    model.set({ notice: "suspend: it is suspended already" });
    await frame();

    expect(button("Suspend").disabled).toBe(false);
    expect(el.querySelector("[role=status]")?.textContent).toBe("suspend: it is suspended already");
  });

  it("shows the verbs of the moment", async () => {
    const model = jobModel();
    show(model);

    model.set({ verbs: [{ do: "resume", label: "Resume" }] });
    await frame();

    expect(Array.from(el.querySelectorAll(".v-bar button")).map((one) => one.textContent)).toEqual(["Resume"]);
  });

  it("opens a node by click and by key", () => {
    const model = jobModel({ cell_head: '<svg><g data-open="default/a" tabindex="0" role="button"></g></svg>' });
    show(model);
    const node = el.querySelector("[data-open]") as Element;

    node.dispatchEvent(new MouseEvent("click", { bubbles: true }));
    node.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true }));

    expect(model.sent.slice(1)).toEqual([{ open: "default/a" }, { open: "default/a" }]);
  });

  it("filters the output by text or pod", () => {
    const model = jobModel();
    show(model);
    const filter = el.querySelector("input") as HTMLInputElement;

    filter.value = "TWO";
    filter.dispatchEvent(new Event("input"));

    expect(el.querySelector("pre")?.textContent).toBe("b | two");
    expect(el.querySelector(".v-note")?.textContent).toBe("1 of 2 lines");
  });

  it("keeps shortcuts of the notebook away from its own keys", () => {
    show(jobModel());

    expect(el.getAttribute("data-lm-suppress-shortcuts")).toBe("true");
  });

  it("listens to nothing any more when it is taken away", () => {
    const model = jobModel();
    show(model);

    stop();

    expect(model.listening).toBe(0);
  });

  it("puts the buttons beside the job that was opened", () => {
    show(jobModel({ sections: ["head", "opened"], cell_opened: "<b>job</b>", logs: false }));

    expect(el.querySelector(".v-opened")?.previousElementSibling?.previousElementSibling?.className).toBe("v-bar");
  });
});
