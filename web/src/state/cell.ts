// A value that calls its listeners when it changes.

export class Cell<T> {
  private readonly listeners = new Set<() => void>();

  constructor(private value: T) {}

  get = (): T => this.value;

  /** Whether anybody looks. */
  get isWatched(): boolean {
    return this.listeners.size > 0;
  }

  set(value: T): void {
    if (Object.is(value, this.value)) return;
    this.value = value;
    for (const listener of [...this.listeners]) listener();
  }

  change(how: (value: T) => T): void {
    this.set(how(this.value));
  }

  subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };
}

/** Calls `work` soon, once for however often it was asked, and never twice at a time. */
export class Soon {
  private timer: ReturnType<typeof setTimeout> | undefined;
  private running = false;
  private again = false;

  constructor(
    private readonly work: () => Promise<void>,
    private readonly delay: number,
  ) {}

  ask(): void {
    if (this.running) this.again = true;
    else this.timer ??= setTimeout(() => void this.run(), this.delay);
  }

  private async run(): Promise<void> {
    this.timer = undefined;
    this.running = true;
    try {
      await this.work();
    } finally {
      this.running = false;
      if (this.again) {
        this.again = false;
        this.ask();
      }
    }
  }
}
