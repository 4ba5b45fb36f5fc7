/// Which trace exchanges belong to, and where their spans go.
package struct TracingConfiguration: Sendable, Equatable {
    /// What servers are told of a trace (`traceparent` and `tracestate`, W3C Trace Context).
    package enum Propagation: String, Sendable, Equatable, CaseIterable {
        /// What the client says.
        case pass
        /// That the request was sent in the gateway's span: of the client's trace, or of one that
        /// begins here.
        case begin
        /// Nothing. What the client says is ignored.
        case off
    }

    /// A share in millionths that stands for all.
    package static let whole = 1_000_000

    /// What servers are told.
    package var traceparent = Propagation.pass
    /// The collector that spans are sent to by OTLP over HTTP; `nil` for nowhere.
    package var otlp: ReportDestination?
    /// Of the traces that begin here, how many are sampled, in millionths.
    package var sampleMillionths = 10_000

    /// Creates the defaults.
    package init() {}

    /// The path of the collector's service for traces, below what is configured.
    package static let tracesPath = "/v1/traces"
}
