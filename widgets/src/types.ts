/** What anywidget hands to a module, as far as this one uses it. */
export interface Model {
  get<T>(name: string): T;
  on(event: string, callback: () => void): void;
  off(event: string, callback: () => void): void;
  send(content: Message): void;
}

/** One button: `do` is what is sent, `confirm` the question that is asked first, where there is one. */
export interface Verb {
  do: string;
  label: string;
  confirm?: string;
}

/** What the kernel is told. Nothing else is ever sent, and no trait is ever written from here. */
export type Message =
  | { mounted: true }
  | { do: string; job: string }
  | { open: string }
  | { close: true }
  | { log: boolean };

export type Send = (message: Message) => void;
