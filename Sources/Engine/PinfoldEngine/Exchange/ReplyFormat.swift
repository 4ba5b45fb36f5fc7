import PinfoldMetrics

/// What a reply is written in that explains why the gateway did not serve a request.
enum ReplyFormat: Sendable, Equatable, CaseIterable {
    case text
    case json
    /// JSON as in RFC 9457.
    case problem
    case html
    /// An XML property list, for clients that ask for a property list.
    case propertyList
    /// The same, for clients that ask for XML.
    case xml

    /// The value of Content-Type.
    var contentType: StaticString {
        switch self {
        case .text: "text/plain; charset=utf-8"
        case .json: "application/json"
        case .problem: "application/problem+json"
        case .html: "text/html; charset=utf-8"
        case .propertyList: "application/x-plist"
        case .xml: "application/xml"
        }
    }

    /// The media type that a client asks for, and the format, in the order in which they are
    /// preferred if the client accepts several alike.
    private static let offers: [(type: StaticString, format: ReplyFormat)] = [
        ("application/json", .json), ("application/problem+json", .problem),
        ("text/html", .html), ("application/x-plist", .propertyList),
        ("application/xml", .xml), ("text/xml", .xml),
    ]

    /// The one that a client accepts most (RFC 9110 section 12.5.1): text, unless it prefers
    /// another, and also if it accepts none.
    init(preferredBy accepted: AcceptedMediaTypes) {
        self = .text
        var best = accepted.weight(of: "text/plain")
        for offer in Self.offers {
            if best == 1000 { return }
            let weight = accepted.weight(of: offer.type)
            guard weight > best else { continue }
            self = offer.format
            best = weight
        }
    }
}
