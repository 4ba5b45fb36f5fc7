/// The listener and the host entry of an exchange, which most metrics of exchanges are told by.
///
/// Both names come from the configuration. A pair of them is one value of a `LabelTable`, so that
/// an exchange is counted by one index.
package enum ExchangeLabels {
    /// The most pairs with series of their own; further ones share the series named `other`.
    package static let capacity = 500

    /// A pair as a value of a table. A listener's name has no slash, so that the first one divides.
    package static func pair(listener: String, host: String) -> String { "\(listener)/\(host)" }

    /// The labels of a pair.
    static func labels(_ pair: String) -> LabelText {
        let parts = pair.split(separator: "/", maxSplits: 1)
        var labels = LabelText("listener", parts.first.map(String.init) ?? pair)
        labels.append("host", parts.last.map(String.init) ?? pair)
        return labels
    }
}

/// What an exchange was, for how its time is counted.
package enum ExchangeKind: UInt8, Sendable, CaseIterable {
    /// A request and its response.
    case request
    /// A tunnel that CONNECT opened.
    case tunnel
    /// A connection that changed to another protocol (101), a WebSocket for example.
    case upgrade
    /// A response that is sent as things happen (`text/event-stream`).
    case eventStream

    /// The label value: `request`, `tunnel`, `upgrade`, `event_stream`.
    package var label: StaticString {
        switch self {
        case .request: "request"
        case .tunnel: "tunnel"
        case .upgrade: "upgrade"
        case .eventStream: "event_stream"
        }
    }
}
