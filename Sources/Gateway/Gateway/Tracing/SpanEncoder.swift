import HTTPCore
import PinfoldEngine
import PinfoldMetrics
import PinfoldTLS

/// Writes the spans of exchanges as OTLP has them (opentelemetry-proto, `trace/v1/trace.proto`),
/// with attributes by OpenTelemetry's semantic conventions for HTTP.
///
/// An exchange is a span of kind SERVER. Each of its phases that happened is a span below it. When
/// a phase began is not known, for what several attempts took is added up: they follow each other
/// in their order, from the beginning.
///
///     GET ├──────────────────────────────────────┤
///         ├ queue ┼ dns ┼ connect ┼ tls ┼ first_byte ┼ body ┤
struct SpanEncoder {
    private let labels: AccessLogLabels
    private var numbers = TraceNumbers()

    init(labels: AccessLogLabels) { self.labels = labels }

    /// Fields of messages, by the names they have in the files of OTLP.
    enum Number {
        // ExportTraceServiceRequest, ResourceSpans, ScopeSpans
        static let resourceSpans = 1, resource = 1, scopeSpans = 2, scope = 1, spans = 2
        // Resource, InstrumentationScope
        static let resourceAttributes = 1, scopeName = 1, scopeVersion = 2
        // Span
        static let traceID = 1, spanID = 2, parentSpanID = 4, name = 5, kind = 6
        static let start = 7, end = 8, attributes = 9, status = 15, flags = 16
        // Status
        static let code = 3
        // KeyValue, AnyValue
        static let key = 1, value = 2, string = 1, bool = 2, int = 3
    }

    private enum Kind {
        static let `internal`: UInt64 = 1
        static let server: UInt64 = 2
    }

    /// `STATUS_CODE_ERROR`.
    private static let error: UInt64 = 2

    /// The bits of a span's flags.
    private enum Flags {
        static let sampled: UInt32 = 1
        /// It is known whether the parent is another process's.
        static let knowsOrigin: UInt32 = 0x100
        static let isRemote: UInt32 = 0x200
    }

    /// Appends the spans of an exchange as elements of `ScopeSpans.spans`. Returns how many.
    mutating func append(
        _ entry: FlowQueue.Entry, _ trace: ExchangeTrace, to writer: inout ProtobufWriter
    ) -> Int {
        let counted = entry.record.counted
        let begin = UInt64(max(0, entry.record.beganMicroseconds))
        let end = begin + counted.durationMicroseconds
        writer.append(Number.spans) { span in
            Self.append(trace.id, trace.span, parent: trace.parent, to: &span)
            span.append(Number.name, text: Self.knownMethod(entry.method) ?? "HTTP")
            span.append(Number.kind, varint: Kind.server)
            Self.append(from: begin, to: end, to: &span)
            appendAttributes(of: entry, to: &span)
            if counted.status >= 500 || counted.failure != nil && counted.status < 400 {
                Self.appendError(to: &span)
            }
            let remote = trace.parent == 0 ? 0 : Flags.isRemote
            span.append(Number.flags, fixed32: Flags.sampled | Flags.knowsOrigin | remote)
        }
        return 1 + appendPhases(of: entry, trace, from: begin, to: end, &writer)
    }

    /// How many spans an exchange has.
    static func count(of record: FlowRecord) -> Int {
        record.trace == nil ? 0 : 1 + phases(of: record).count
    }

    // MARK: The phases

    private static func phases(of record: FlowRecord) -> [Phase] {
        Phase.allCases.filter { record.phases[$0] != nil }
    }

    private mutating func appendPhases(
        of entry: FlowQueue.Entry, _ trace: ExchangeTrace, from begin: UInt64, to end: UInt64,
        _ writer: inout ProtobufWriter
    ) -> Int {
        let phases = entry.record.phases
        let happened = Self.phases(of: entry.record)
        var start = begin
        for phase in happened {
            let number = numbers.span()
            let stop = min(end, start + (phases[phase] ?? 0))
            writer.append(Number.spans) { span in
                Self.append(trace.id, number, parent: trace.span, to: &span)
                span.append(Number.name, text: "\(phase.label)")
                span.append(Number.kind, varint: Kind.internal)
                Self.append(from: start, to: stop, to: &span)
                Self.appendAttributes(of: phase, entry.record, to: &span)
                // Nothing came after what went wrong.
                if phase == happened.last, let failure = entry.record.counted.failure {
                    Self.append("error.type", reason(failure), to: &span)
                    Self.appendError(to: &span)
                }
                span.append(Number.flags, fixed32: Flags.sampled | Flags.knowsOrigin)
            }
            start = stop
        }
        return happened.count
    }

    private static func appendAttributes(
        of phase: Phase, _ record: FlowRecord, to span: inout ProtobufWriter
    ) {
        switch phase {
        case .queue, .dns, .body: break
        case .connect: appendPeer(of: record, to: &span)
        case .tls:
            appendPeer(of: record, to: &span)
            if let version = record.upstreamTLS {
                append("tls.protocol.name", "tls", to: &span)
                append("tls.protocol.version", version.number, to: &span)
            }
        case .firstByte:
            appendPeer(of: record, to: &span)
            append("network.protocol.version", record.upstreamVersion?.number, to: &span)
            if let isReused = record.isReused {
                append("pinfold.connection.reused", isReused, to: &span)
            }
        }
    }

    private static func appendPeer(of record: FlowRecord, to span: inout ProtobufWriter) {
        guard let address = record.upstreamAddress else { return }
        guard address != .unnamed else { return append("network.transport", "unix", to: &span) }
        append("network.peer.address", "\(address)", to: &span)
        append("network.peer.port", Int64(record.upstreamPort), to: &span)
    }

    // MARK: The exchange

    private func appendAttributes(
        of entry: FlowQueue.Entry, to span: inout ProtobufWriter
    ) {
        let (record, counted) = (entry.record, entry.record.counted)
        let method = Self.knownMethod(entry.method)
        Self.append("http.request.method", method ?? "_OTHER", to: &span)
        if method == nil, !entry.method.isEmpty {
            Self.append("http.request.method_original", SpanEncoder.text(entry.method), to: &span)
        }
        let target = FlowTarget(entry)
        Self.append("url.scheme", target.scheme, to: &span)
        Self.append("url.path", target.path, to: &span)
        let host = target.hostAndPort.host
        if !host.isEmpty { Self.append("server.address", host, to: &span) }
        if let port = target.port { Self.append("server.port", Int64(port), to: &span) }
        if record.clientAddress != .unnamed {
            Self.append("client.address", "\(record.clientAddress)", to: &span)
        }
        if record.spoken == nil {
            Self.append("network.protocol.name", "http", to: &span)
            Self.append("network.protocol.version", record.version?.number, to: &span)
        }
        if !entry.userAgent.isEmpty {
            Self.append("user_agent.original", SpanEncoder.text(entry.userAgent), to: &span)
        }
        if counted.status > 0 {
            Self.append("http.response.status_code", Int64(counted.status), to: &span)
        }
        if let failure = counted.failure {
            Self.append("error.type", reason(failure), to: &span)
        } else if counted.status >= 500 {
            Self.append("error.type", "\(counted.status)", to: &span)
        }
        Self.append("http.request.body.size", Int64(clamping: counted.requestBytes), to: &span)
        Self.append("http.response.body.size", Int64(clamping: counted.responseBytes), to: &span)
        Self.append(
            "pinfold.exchange.id", String(hexadecimal: record.exchange, digits: 16), to: &span)
        Self.append("pinfold.listener", labels.listeners[counted.route.listener], to: &span)
        Self.append("pinfold.host", labels.hosts[counted.route.host], to: &span)
        Self.append("pinfold.cache", "\(counted.cache.label)", to: &span)
        if !entry.rule.isEmpty {
            Self.append("pinfold.rule", SpanEncoder.text(entry.rule), to: &span)
        }
    }

    /// Bytes as text; what is no UTF-8 is replaced, for a collector refuses what is not.
    static func text(_ bytes: some Collection<UInt8>) -> String {
        String(decoding: bytes, as: UTF8.self)
    }

    private func reason(_ index: Int) -> String {
        labels.reasons.indices.contains(index) ? labels.reasons[index] : "_OTHER"
    }

    /// The methods that the conventions know (`http.request.method`).
    private static let knownMethods: Set<String> = [
        "CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "QUERY", "TRACE",
    ]

    /// A method's name; `nil` for any other.
    private static func knownMethod(_ method: UnsafeRawBufferPointer) -> String? {
        let name = SpanEncoder.text(method)
        return knownMethods.contains(name) ? name : nil
    }

    // MARK: Parts

    private static func append(
        _ trace: TraceID, _ span: UInt64, parent: UInt64, to writer: inout ProtobufWriter
    ) {
        writer.append(Number.traceID, bigEndian: trace.high, trace.low)
        writer.append(Number.spanID, bigEndian: span)
        if parent != 0 { writer.append(Number.parentSpanID, bigEndian: parent) }
    }

    /// Times in microseconds since 1970.
    private static func append(
        from begin: UInt64, to end: UInt64, to writer: inout ProtobufWriter
    ) {
        writer.append(Number.start, fixed64: begin * 1000)
        writer.append(Number.end, fixed64: end * 1000)
    }

    private static func appendError(to writer: inout ProtobufWriter) {
        writer.append(Number.status) { $0.append(Number.code, varint: error) }
    }

    /// Appends an attribute of a span, or of a resource, unless it has no value.
    static func append(_ key: String, _ value: String?, to writer: inout ProtobufWriter) {
        guard let value else { return }
        append(key, to: &writer) { $0.append(Number.string, text: value) }
    }

    private static func append(_ key: String, _ value: Int64, to writer: inout ProtobufWriter) {
        append(key, to: &writer) { $0.append(Number.int, varint: UInt64(bitPattern: value)) }
    }

    private static func append(_ key: String, _ value: Bool, to writer: inout ProtobufWriter) {
        append(key, to: &writer) { $0.append(Number.bool, varint: value ? 1 : 0) }
    }

    private static func append(
        _ key: String, to writer: inout ProtobufWriter, _ value: (inout ProtobufWriter) -> Void
    ) {
        writer.append(Number.attributes) { attribute in
            attribute.append(Number.key, text: key)
            attribute.append(Number.value, message: value)
        }
    }
}

extension HTTPVersion {
    /// The version as the conventions write it (`network.protocol.version`).
    fileprivate var number: String {
        switch self {
        case .http10: "1.0"
        case .http11: "1.1"
        case .http2: "2"
        }
    }
}

extension TLSVersion {
    /// The version as the conventions write it (`tls.protocol.version`).
    fileprivate var number: String {
        switch self {
        case .tls10: "1.0"
        case .tls11: "1.1"
        case .tls12: "1.2"
        case .tls13: "1.3"
        }
    }
}
