/// The formats of `/metrics`.
public enum ExpositionFormat: Sendable, CaseIterable {
    /// Prometheus text format 0.0.4.
    case text
    /// OpenMetrics 1.0.0.
    case openMetrics

    /// The `Content-Type` of an exposition.
    public var contentType: StaticString {
        switch self {
        case .text: "text/plain; version=0.0.4; charset=utf-8"
        case .openMetrics: "application/openmetrics-text; version=1.0.0; charset=utf-8"
        }
    }

    /// The format for a request's `Accept` field (`nil`: no such field): the one with the higher
    /// weight; the text format if they are equal, and also if neither is accepted, as a scraper is
    /// better served by that than by an error.
    public init(accept: String?) {
        let accepted = AcceptedMediaTypes(accept)
        let text = accepted.weight(of: "text/plain", version: "0.0.4")
        let openMetrics = accepted.weight(of: "application/openmetrics-text", version: "1.0.0")
        self = openMetrics > text ? .openMetrics : .text
    }
}
