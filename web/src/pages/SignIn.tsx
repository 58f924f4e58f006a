// Shown to a browser that is not signed in.

import type { ReactNode } from "react";

export function SignIn(): ReactNode {
  return (
    <main className="signin" id="main">
      <h1>Sign in</h1>
      <p>This browser is not signed in. In a terminal, in the workspace, run:</p>
      <pre><code>mas url</code></pre>
      <p>It prints an address that signs this browser in, once, within five minutes.</p>
      <button type="button" className="strong" onClick={() => location.reload()}>I have signed in</button>
    </main>
  );
}
