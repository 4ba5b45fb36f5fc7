import HTTPTypes
import Tracing

/// The span of a task, from its beginning to its end, in the terms of OpenTelemetry's conventions
/// for clients of HTTP. Redirects, answered challenges and retries are within it.
struct TaskSpan: Sendable {
    private let tracer: any Tracer
    private let span: any Span

    /// Starts the span, within the one of the calling task.
    init(of request: HTTPRequest, by tracer: any Tracer) {
        self.tracer = tracer
        span = tracer.startSpan(request.method.rawValue, ofKind: .client)
        guard span.isRecording else { return }
        span.attributes["http.request.method"] = request.method.rawValue
        describe(request)
    }

    private func describe(_ request: HTTPRequest) {
        // A query may contain secrets.
        span.attributes["url.full"] = String(
            ClientError.shown(request.url).prefix { $0 != "?" })
        guard let origin = request.origin else { return }
        span.attributes["server.address"] = origin.host
        span.attributes["server.port"] = Int(origin.port)
    }

    /// Adds the fields that let the server continue the trace, unless the caller has set them.
    func inject(into fields: inout HTTPFields) {
        var added = HTTPFields()
        tracer.inject(span.context, into: &added, using: FieldInjector())
        for field in added where !fields.contains(field.name) { fields.append(field) }
    }

    /// Ends the span.
    ///
    /// - Parameter completion: How the task has ended, or `nil` if it never began.
    func end(_ completion: TaskCompletion?) {
        if span.isRecording, let completion { describe(completion) }
        span.end()
    }

    private func describe(_ completion: TaskCompletion) {
        // After redirects, it is another one.
        describe(completion.request)
        let transactions = completion.metrics.transactions
        if transactions.count > 1 {
            span.attributes["http.request.resend_count"] = transactions.count - 1
        }
        if let name = transactions.last?.protocolName {
            span.attributes["network.protocol.version"] = name == "h2" ? "2" : "1.1"
        }
        if let status = completion.response?.status.code {
            span.attributes["http.response.status_code"] = status
            if status >= 400 { fail(with: "\(status)") }
        }
        if let error = completion.error {
            fail(with: error.token, error.explanation)
            span.recordError(error)
        }
    }

    private func fail(with type: String, _ message: String? = nil) {
        span.attributes["error.type"] = type
        span.setStatus(SpanStatus(code: .error, message: message))
    }
}

private struct FieldInjector: Injector {
    func inject(_ value: String, forKey key: String, into fields: inout HTTPFields) {
        guard let name = HTTPField.Name(key), HTTPField.isValidValue(value) else { return }
        fields[name] = value
    }
}

extension SessionConfiguration {
    /// The tracer that the program has bootstrapped, or `nil` if it has none.
    static var bootstrappedTracer: (any Tracer)? {
        let tracer = InstrumentationSystem.tracer
        return tracer is NoOpTracer ? nil : tracer
    }
}
