// The keys of this browser, in its database: no script can read them, and no other address has them.

import type { Key, Keys } from "../protocol/door.ts";

// One for each server that was ever at this address.
const MOST = 8;

interface Kept extends Key {
  at: number;
}

export class BrowserKeys implements Keys {
  /** Those of this tab: all that there is where a browser keeps nothing, as in some private windows. */
  private readonly own = new Map<string, Kept>();

  async all(): Promise<Key[]> {
    const kept = new Map(this.own);
    for (const key of await this.stored()) kept.set(key.name, key);
    return [...kept.values()].sort((one, other) => other.at - one.at).slice(0, MOST);
  }

  async put({ name, secret }: Key): Promise<void> {
    const kept = { name, secret, at: Date.now() };
    this.own.set(name, kept);
    const old = (await this.stored()).sort((one, other) => other.at - one.at).slice(MOST - 1);
    await inStore("readwrite", (store) => {
      for (const one of old) store.delete(one.name);
      return store.put(kept);
    }).catch(() => undefined);
  }

  async remove(name: string): Promise<void> {
    this.own.delete(name);
    await inStore("readwrite", (store) => store.delete(name)).catch(() => undefined);
  }

  private stored(): Promise<Kept[]> {
    return inStore<Kept[]>("readonly", (store) => store.getAll()).catch(() => []);
  }
}

async function inStore<T>(mode: IDBTransactionMode, act: (store: IDBObjectStore) => IDBRequest): Promise<T> {
  const opening = indexedDB.open("mas", 1);
  opening.onupgradeneeded = () => opening.result.createObjectStore("keys", { keyPath: "name" });
  const database = (await done(opening)) as IDBDatabase;
  try {
    return (await done(act(database.transaction("keys", mode).objectStore("keys")))) as T;
  } finally {
    database.close();
  }
}

function done(request: IDBRequest): Promise<unknown> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error ?? new Error("The browser keeps nothing"));
  });
}
