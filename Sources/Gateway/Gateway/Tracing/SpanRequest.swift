import HTTPCore

/// The messages of the collector's service for traces (OTLP,
/// `collector/trace/v1/trace_service.proto`).
enum SpanRequest {
    /// The content of a request: `ExportTraceServiceRequest`.
    /// - Parameters:
    ///   - spans: elements of `ScopeSpans.spans`.
    ///   - version: the program's.
    ///   - host: the machine's name.
    static func message(spans: [UInt8], version: String, host: String) -> [UInt8] {
        typealias Number = SpanEncoder.Number
        let attributes = [
            ("service.name", "pinfold"), ("service.version", version), ("host.name", host),
        ]
        var writer = ProtobufWriter()
        writer.append(Number.resourceSpans) { resourceSpans in
            resourceSpans.append(Number.resource) { resource in
                for (key, value) in attributes {
                    resource.append(Number.resourceAttributes) { attribute in
                        attribute.append(Number.key, text: key)
                        attribute.append(Number.value) { $0.append(Number.string, text: value) }
                    }
                }
            }
            resourceSpans.append(Number.scopeSpans) { scopeSpans in
                scopeSpans.append(Number.scope) { scope in
                    scope.append(Number.scopeName, text: "pinfold")
                    scope.append(Number.scopeVersion, text: version)
                }
                scopeSpans.append(encoded: spans)
            }
        }
        return writer.bytes
    }

    /// What a collector did not take of a request that it accepted:
    /// `ExportTraceServiceResponse.partial_success`.
    struct Rejection: Equatable {
        /// How many spans.
        var spans: UInt64 = 0
        /// Why, for an operator.
        var message = ""

        /// What the content of an answer says. One that is not understood says nothing.
        init(_ answer: [UInt8]) {
            var response = ProtobufReader(answer[...])
            while let field = response.next() {
                guard field.number == 1, case .bytes(let partial) = field.value else { continue }
                var success = ProtobufReader(partial)
                while let field = success.next() {
                    switch (field.number, field.value) {
                    case (1, .number(let count)): spans = count
                    case (2, .bytes(let text)): message = SpanEncoder.text(text)
                    default: break
                    }
                }
            }
        }
    }
}
