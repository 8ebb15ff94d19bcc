/**
 * What is left of a live view in a saved notebook. JupyterLab prefers the widget of a saved output to its HTML, and shows "model not
 * found" when no kernel has it any more. So each time a notebook is saved, the HTML that its outputs hold is kept as the state of an
 * HTML widget with the view's id, in the notebook's metadata, where the Jupyter widgets look for what no kernel has. Front ends that
 * have no such save (VS Code, Colab) are left alone.
 */
const VIEW = "application/vnd.jupyter.widget-view+json";
const STATE = "application/vnd.jupyter.widget-state+json";
const CONTROLS = { model_module: "@jupyter-widgets/controls", model_module_version: "2.0.0" };
const BASE = { model_module: "@jupyter-widgets/base", model_module_version: "2.0.0" };
/** Marks the HTML of a view that was not at its end (vcnb/notebook/widget/scene.py), and what is kept of it here. */
const MARK = "vcnb-saved";
const HOOKED = Symbol.for("vcnb.saved");

type Json = Record<string, any>;

interface Document {
  toJSON(): Json;
  getMetadata(key: string): Json | undefined;
  setMetadata(key: string, value: Json): void;
  deleteMetadata(key: string): void;
}

interface Saving {
  model: Document;
  saveState: { connect(slot: (sender: unknown, state: string) => void): void };
  [HOOKED]?: true;
}

const text = (value: string | string[]): string => (typeof value === "string" ? value : value.join(""));

/** The widget states for the outputs of a notebook, put in the place of those that were kept before. */
export function states(notebook: Json, before: Json): Json {
  const kept = Object.entries<Json>(before).filter(([, model]) => !model.state?._dom_classes?.includes(MARK));
  const found = Object.fromEntries(kept.filter(([id]) => !id.startsWith(`${MARK}-`)));
  for (const cell of notebook.cells ?? []) {
    for (const { data } of cell.outputs ?? []) {
      const id = data?.[VIEW]?.model_id;
      const html = text(data?.["text/html"] ?? "");
      if (!id || !html.includes(MARK)) continue;
      const layout = `${MARK}-${id}`;
      found[layout] = { ...BASE, model_name: "LayoutModel", state: {} };
      const state = { _dom_classes: [MARK], layout: `IPY_MODEL_${layout}`, value: html };
      found[id] = { ...CONTROLS, model_name: "HTMLModel", state };
    }
  }
  return found;
}

function keep(document: Document): void {
  const widgets = document.getMetadata("widgets") ?? {};
  const before = widgets[STATE]?.state ?? {};
  const state = states(document.toJSON(), before);
  const { [STATE]: _, ...others } = widgets;
  if (Object.keys(state).length) {
    document.setMetadata("widgets", { ...others, [STATE]: { version_major: 2, version_minor: 0, state } });
  } else if (Object.keys(before).length) {
    if (Object.keys(others).length) document.setMetadata("widgets", others);
    else document.deleteMetadata("widgets");
  }
}

/** Keep the views of the notebook in which a model lives whenever it is saved; once for each notebook. */
export function keepWhenSaved(layout: { widget_manager?: { context?: Saving } } | undefined): void {
  const context = layout?.widget_manager?.context;
  if (!context?.saveState?.connect || !context.model?.setMetadata || context[HOOKED]) return;
  context[HOOKED] = true;
  context.saveState.connect((_, state) => {
    if (state !== "started") return;
    try {
      keep(context.model);
    } catch (error) {
      console.warn("vcnb: the view was not kept for a notebook without its kernel", error);
    }
  });
}
