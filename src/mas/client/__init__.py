"""The product over HTTP: `RemoteMas` is the same `Mas`, wherever its server runs.

    from mas.client import RemoteMas
    from mas.model.run import Run
    from mas.model.team import team_named

    with RemoteMas("http://127.0.0.1:7717", token) as mas:
        session = mas.start(Run(team=team_named("pair"), name="release"))
        mas.send(session.session_id, "all", "Good morning")
        print(mas.show(session.session_id).status)

`mas token` prints the token. On the server's own machine `RemoteMas("unix:/…/sessions/.mas/server/api.sock")` reads
it from the file beside the socket. Refusals are the errors of `mas.model.errors`; no server at all is `NoServer`.
"""

from mas.client.own import OwnSession
from mas.client.remote import RemoteMas

__all__ = ["OwnSession", "RemoteMas"]
