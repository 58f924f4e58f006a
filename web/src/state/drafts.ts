// What was typed and not sent yet: outlives a reload, and a server that is away. Kept for this tab only.

const PREFIX = "mas-draft:";

export function readDraft(name: string): string {
  try {
    return sessionStorage.getItem(PREFIX + name) ?? "";
  } catch {
    return "";
  }
}

export function keepDraft(name: string, text: string): void {
  try {
    if (text) sessionStorage.setItem(PREFIX + name, text);
    else sessionStorage.removeItem(PREFIX + name);
  } catch {
    // A browser that keeps nothing: then it is lost with the page.
  }
}
