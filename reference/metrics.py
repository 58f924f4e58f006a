"""The metrics, from a registry as the server has it."""

from __future__ import annotations

from collections.abc import Iterator
from tempfile import TemporaryDirectory

from prometheus_client.core import Metric

from mas.bootstrap import init, open_mas
from mas.http.metrics import Metrics
from reference.markdown import code, plain, table

_OF_BUCKETS = "le"


def metrics() -> str:
    """Every metric with its labels."""
    rows = ((code(name), kind, labels, plain(text)) for name, kind, labels, text in _metrics())
    return table(("metric", "type", "labels", "meaning"), rows)


def _metrics() -> Iterator[tuple[str, str, str, str]]:
    with TemporaryDirectory() as directory:
        init(directory, None, None)
        found = Metrics(open_mas(directory))
        # A labelled one shows its labels once something was counted.
        found.request("GET", "/sessions", 200, 0.0)
        found.task_started("events")
        with found.open_stream("events"):
            for metric in found.families():
                yield metric.name, metric.type, ", ".join(map(code, _labels(metric))), metric.documentation


def _labels(metric: Metric) -> tuple[str, ...]:
    told = getattr(metric, "_labelnames", ())
    seen = dict.fromkeys(label for sample in metric.samples for label in sample.labels if label != _OF_BUCKETS)
    return tuple(told) or tuple(seen)
