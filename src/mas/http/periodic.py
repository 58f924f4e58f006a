"""The courier's periodic rounds: find waiting messages that no event announced."""

from __future__ import annotations

from mas.service.messages.courier import Courier


class Rounds:
    """Sends the courier round: through all sessions after events were missed, else to what it left waiting."""

    def __init__(self, courier: Courier) -> None:
        self._courier = courier
        self._whole = True

    def begin_again(self) -> None:
        """The next round is one through all sessions."""
        self._whole = True

    def go(self) -> None:
        """One round; one that fails is made again as it was."""
        whole, self._whole = self._whole, False
        try:
            if whole:
                self._courier.look_around()
            else:
                self._courier.look_again()
        except BaseException:
            self._whole = self._whole or whole
            raise
