/// The version in a start line (RFC 9112 §2.3). All others are refused.
///
/// What follows from a version is asked here and nowhere else. Each answer is a switch without a
/// default, so that another version does not compile until all of them have been given for it; a
/// comparison with one version would silently count any other as its opposite.
public enum HTTPVersion: UInt8, Sendable, CaseIterable {
    case http10, http11

    /// Whether a connection persists unless a message says otherwise (RFC 9112 §9.3).
    public var persistsByDefault: Bool {
        switch self {
        case .http10: false
        case .http11: true
        }
    }

    /// Whether a message may have Transfer-Encoding (RFC 9112 §6.1).
    public var hasTransferCodings: Bool {
        switch self {
        case .http10: false
        case .http11: true
        }
    }

    /// Whether a client understands interim responses, and may wait for one (RFC 9110 §10.1.1,
    /// §15.2).
    public var hasInterimResponses: Bool {
        switch self {
        case .http10: false
        case .http11: true
        }
    }

    /// Whether a request may ask for another protocol by Upgrade (RFC 9110 §7.8).
    public var hasUpgrade: Bool {
        switch self {
        case .http10: false
        case .http11: true
        }
    }

    /// Whether a request must name its host (RFC 9112 §3.2).
    public var requiresHost: Bool {
        switch self {
        case .http10: false
        case .http11: true
        }
    }

    /// The end of a request line, with the version.
    var requestLineEnd: StaticString {
        switch self {
        case .http10: " HTTP/1.0\r\n"
        case .http11: " HTTP/1.1\r\n"
        }
    }

    /// The line of Via for a message received in this version (RFC 9110 §7.6.3).
    @inlinable var viaLine: StaticString {
        switch self {
        case .http10: "Via: 1.0 pinfold\r\n"
        case .http11: "Via: 1.1 pinfold\r\n"
        }
    }
}
