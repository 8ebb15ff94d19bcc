/** Times that go on between two messages: `<time data-since="seconds since the epoch">`. */

/** A length of time in at most two units, as the kernel says it: `0.42s`, `7.3s`, `3m10s`, `5h7m`, `2d4h`. */
export function span(seconds: number): string {
  if (seconds < 0) return "0s";
  if (seconds < 1) return `${seconds.toFixed(2)}s`;
  if (seconds < 10) return `${seconds.toFixed(1)}s`;
  if (seconds < 120) return `${seconds.toFixed(0)}s`;
  const whole = Math.floor(seconds);
  const units: [number, string, number, string][] = [
    [86400, "d", 3600, "h"],
    [3600, "h", 60, "m"],
    [60, "m", 1, "s"],
  ];
  for (const [size, unit, smaller, smallUnit] of units) {
    if (whole < size) continue;
    const rest = Math.floor((whole % size) / smaller);
    return `${Math.floor(whole / size)}${unit}${rest ? `${rest}${smallUnit}` : ""}`;
  }
  return `${whole}s`;
}

export class Clock {
  private offset = 0;
  private readonly timer: ReturnType<typeof setInterval>;

  constructor(private readonly root: Element) {
    this.timer = setInterval(() => this.tick(), 1000);
  }

  /** The kernel says what time it is; its clock is the one that counts. */
  set(now: number): void {
    if (now) this.offset = now - Date.now() / 1000;
  }

  tick(): void {
    const now = Date.now() / 1000 + this.offset;
    for (const element of Array.from(this.root.querySelectorAll("time[data-since]"))) {
      const seconds = now - Number(element.getAttribute("data-since"));
      const text = span(seconds < 10 ? Math.max(Math.round(seconds), 0) + 0.0001 : seconds).replace(/\.\d+s/, "s");
      if (element.textContent !== text) element.textContent = text;
    }
  }

  stop(): void {
    clearInterval(this.timer);
  }
}
