import { describe, expect, it, vi } from "vitest";
import { keepWhenSaved, states } from "../src/saved";

const STATE = "application/vnd.jupyter.widget-state+json";
const live = { "application/vnd.jupyter.widget-view+json": { model_id: "m1" }, "text/html": ["<b>x</b>", '<i class="vcnb-saved"></i>'] };
const ended = { "text/html": "<b>over</b>" };
const notebook = (...bundles: object[]) => ({ cells: [{ outputs: bundles.map((data) => ({ data })) }, {}] });

describe("what is kept when a notebook is saved", () => {
  it("is the HTML of a live view, under the view's id", () => {
    const found = states(notebook(live), {});

    expect(found.m1.model_name).toBe("HTMLModel");
    expect(found.m1.state.value).toBe('<b>x</b><i class="vcnb-saved"></i>');
    expect(found[found.m1.state.layout.replace("IPY_MODEL_", "")].model_name).toBe("LayoutModel");
  });

  it("goes when the view has ended, and what others keep stays", () => {
    const other = { model_name: "IntSliderModel", state: { value: 3 } };

    expect(states(notebook(ended), { ...states(notebook(live), {}), other })).toEqual({ other });
  });

  it("leaves the widgets of others alone", () => {
    expect(states(notebook({ ...live, "text/html": "<b>theirs</b>" }), {})).toEqual({});
  });
});

describe("a notebook", () => {
  function saving(data: object) {
    const slots: ((sender: unknown, state: string) => void)[] = [];
    const metadata = new Map<string, any>();
    const model = {
      toJSON: vi.fn(() => notebook(data)),
      getMetadata: (key: string) => metadata.get(key),
      setMetadata: (key: string, value: object) => void metadata.set(key, value),
      deleteMetadata: (key: string) => void metadata.delete(key),
    };
    const context = { model, saveState: { connect: (slot: (typeof slots)[0]) => void slots.push(slot) } };
    const save = () => ["started", "completed"].forEach((state) => slots.forEach((slot) => slot(null, state)));
    return { context, slots, metadata, model, save };
  }

  it("is followed once, and gets and loses the kept state as it is saved", () => {
    const { context, slots, metadata, model, save } = saving(live);
    keepWhenSaved({ widget_manager: { context } });
    keepWhenSaved({ widget_manager: { context } });
    expect(slots.length).toBe(1);

    save();
    expect(metadata.get("widgets")[STATE].state.m1).toBeDefined();
    expect(model.toJSON).toHaveBeenCalledTimes(1);
    model.toJSON.mockReturnValue(notebook(ended));
    save();
    expect(metadata.has("widgets")).toBe(false);
  });

  it("is saved also when its model is unlike what is known", () => {
    const warn = vi.spyOn(console, "warn").mockImplementation(() => undefined);
    const { context, model, save } = saving(live);
    keepWhenSaved({ widget_manager: { context } });
    model.toJSON.mockImplementation(() => {
      throw new Error("other");
    });
    save();
    expect(warn).toHaveBeenCalledOnce();
    keepWhenSaved(undefined);
    keepWhenSaved({ widget_manager: {} });
  });
});
