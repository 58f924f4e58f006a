// Shown to a browser that is not signed in, that cannot sign in here, or whose server does not prove itself.

import type { ReactNode } from "react";
import type { Out } from "../protocol/api.ts";
import { useMas } from "../state/mas.ts";

export function SignIn({ why }: { why: Out }): ReactNode {
  const mas = useMas();
  const isStranger = why === "stranger";
  return (
    <main className="signin" id="main">
      {isStranger ? <Stranger /> : <Way isLinkUsed={mas.door.isLinkUsed} />}
      <button type="button" className="strong" onClick={() => mas.again()}>{isStranger ? "Try again" : "I have signed in"}</button>
    </main>
  );
}

function Way({ isLinkUsed }: { isLinkUsed: boolean }): ReactNode {
  return (
    <>
      <h1>{isLinkUsed ? "This sign-in link is used up" : "Sign in"}</h1>
      {isLinkUsed && <p>A sign-in link works once, within five minutes, and only for the server that printed it.</p>}
      <p>This browser is not signed in. In a terminal, in the workspace, run:</p>
      <pre><code>mas url</code></pre>
      <p>It prints an address that signs this browser in, once, within five minutes.</p>
    </>
  );
}

function Stranger(): ReactNode {
  return (
    <>
      <h1>This is not your MAS</h1>
      <p>The program at this address cannot prove that it is the MAS which this browser signed in to. Nothing else was sent to it.</p>
      <p>It may be the MAS of another workspace, or a program that took the port of a server that has exited. Do not reload this page. Start your server again, in its workspace:</p>
      <pre><code>mas serve</code></pre>
      <p>If your server listens at another address now, <code>mas url</code> prints a new sign-in link.</p>
    </>
  );
}

/** Browsers have cryptography, and so keys, only at addresses that nobody on the way can change. */
export function NotHere(): ReactNode {
  return (
    <main className="signin" id="main">
      <h1>This page needs a secure address</h1>
      <p>The address <code>{location.origin}</code> is not encrypted, so this browser cannot keep the key that signs it in. Use one of these:</p>
      <ul>
        <li>On the machine of the server, the address that <code>mas url</code> prints.</li>
        <li>From another machine, a tunnel: <code>ssh -L 7717:127.0.0.1:7717 HOST</code>, then <code>http://127.0.0.1:7717/</code> here.</li>
        <li>An <code>https://</code> address: <code>mas serve --tls-cert FILE --tls-key FILE</code>, or a proxy in front of the server.</li>
      </ul>
    </main>
  );
}
