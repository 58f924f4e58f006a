// Names that no other page draws. `randomUUID` is not for pages that came unencrypted from elsewhere.

export function randomHex(bytes: number): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(bytes)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
