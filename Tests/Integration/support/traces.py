"""A collector of spans, which decodes them with OpenTelemetry's own definitions, and the fields of W3C
Trace Context."""

from __future__ import annotations

import ssl
import time
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from .gateway import Gateway
from .origin import HTTPOrigin, Request, reply
from .wait import until

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = "00f067aa0ba902b7"
SAMPLED, UNSAMPLED = f"00-{TRACE}-{PARENT}-01", f"00-{TRACE}-{PARENT}-00"
PHASES = ["queue", "dns", "connect", "tls", "first_byte", "body"]
PROTOBUF = "Content-Type: application/x-protobuf"


def accepted(rejected: int = 0, message: str = "") -> bytes:
    """The answer of a collector."""
    answer = ExportTraceServiceResponse()
    if rejected:
        answer.partial_success.rejected_spans = rejected
        answer.partial_success.error_message = message
    return reply(answer.SerializeToString(), "200 OK", PROTOBUF)


class SpanCollector(HTTPOrigin):
    """Takes spans. `answers` are given in turn; after them everything is accepted."""

    def __init__(self, tls: ssl.SSLContext | None = None, answers: list[bytes] | None = None,
                 **options: Any):
        self.answers = list(answers or [])
        # When each request had arrived.
        self.times: list[float] = []
        super().__init__(self._answer, tls=tls, **options)

    def _answer(self, request: Request) -> bytes:
        self.times.append(time.monotonic())
        assert request.get("content-type") == "application/x-protobuf", request.headers
        return self.answers.pop(0) if self.answers else accepted()

    @property
    def messages(self) -> list[ExportTraceServiceRequest]:
        return [ExportTraceServiceRequest.FromString(one.body) for one in list(self.requests)]

    @property
    def spans(self) -> list[Span]:
        return [span for message in self.messages for resource in message.resource_spans
                for scope in resource.scope_spans for span in scope.spans]

    @property
    def exchanges(self) -> list[Span]:
        return [span for span in self.spans if span.kind == Span.SPAN_KIND_SERVER]

    def wait(self, count: int = 1, timeout: float = 20) -> list[Span]:
        """The spans of that many exchanges."""
        return until(lambda: found if len(found := self.exchanges) >= count else [],
                     lambda: f"{count} exchanges, not {self.exchanges}", timeout)

    def phases(self, of: Span) -> list[Span]:
        """The spans below one."""
        return [span for span in self.spans if span.parent_span_id == of.span_id]


def values(attributes: Any) -> dict[str, Any]:
    """Attributes, as they are in Python."""
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in attributes}


def counted(running: Gateway, result: str) -> float:
    return running.metric("pinfold_trace_spans_total", result=result)


def parts(traceparent: str) -> tuple[str, str, bool]:
    """The trace, the span and whether it is sampled, of a valid value."""
    version, trace, span, flags = traceparent.split("-")
    assert (version, len(trace), len(span)) == ("00", 32, 16), traceparent
    assert traceparent == traceparent.lower() and int(trace, 16) and int(span, 16)
    return trace, span, {"00": False, "01": True}[flags]
