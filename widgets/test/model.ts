import type { Message, Model } from "../src/types";

/** A model without a kernel: traits can be set, and what is sent is kept. */
export class FakeModel implements Model {
  readonly sent: Message[] = [];
  private readonly listeners = new Map<string, Set<() => void>>();

  constructor(private readonly traits: Record<string, unknown>) {}

  get<T>(name: string): T {
    return this.traits[name] as T;
  }

  set(changes: Record<string, unknown>): void {
    Object.assign(this.traits, changes);
    for (const name of Object.keys(changes)) for (const call of this.listeners.get(`change:${name}`) ?? []) call();
  }

  on(event: string, callback: () => void): void {
    this.listeners.set(event, (this.listeners.get(event) ?? new Set()).add(callback));
  }

  off(event: string, callback: () => void): void {
    this.listeners.get(event)?.delete(callback);
  }

  get listening(): number {
    return [...this.listeners.values()].reduce((sum, all) => sum + all.size, 0);
  }

  send(content: Message): void {
    this.sent.push(content);
  }
}

export function jobModel(changes: Record<string, unknown> = {}): FakeModel {
  return new FakeModel({
    sections: ["head", "pods"],
    zoom: [],
    logs: true,
    label: "job train, Running",
    notice: "",
    job: "default/train",
    verbs: [
      { do: "suspend", label: "Suspend" },
      { do: "delete", label: "Delete", confirm: "Delete job train with its pods?" },
    ],
    log: "a | one\nb | two",
    log_open: true,
    now: 0,
    cell_head: "<b>train</b>",
    cell_pods: "",
    ...changes,
  });
}

export function frame(): Promise<void> {
  return new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve, 0)));
}
