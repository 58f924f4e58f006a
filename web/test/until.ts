// Waits for a fact, with a deadline.
export async function until(fact: () => boolean, patience = 5000): Promise<void> {
  const deadline = Date.now() + patience;
  while (!fact()) {
    if (Date.now() > deadline) throw new Error(`waited in vain: ${fact}`);
    await new Promise((done) => setTimeout(done, 5));
  }
}
