/// The version in a start line (RFC 9112 §2.3). All others are refused. HTTP/2 has no start line:
/// the heads that are assembled from its pseudo-fields are given one with `HTTP/2.0`
/// (``HTTPCarrier``).
///
/// What follows from a version is asked here and nowhere else. Each answer is a switch without a
/// default, so that another version does not compile until all of them have been given for it; a
/// comparison with one version would silently count any other as its opposite.
public enum HTTPVersion: UInt8, Sendable, CaseIterable {
    case http10, http11, http2

    /// Whether a connection persists unless a message says otherwise (RFC 9112 §9.3). In HTTP/2 no
    /// message can.
    public var persistsByDefault: Bool {
        switch self {
        case .http10: false
        case .http11, .http2: true
        }
    }

    /// Whether a message may have Transfer-Encoding (RFC 9112 §6.1, RFC 9113 §8.1).
    public var hasTransferCodings: Bool {
        switch self {
        case .http10: false
        case .http11: true
        case .http2: false
        }
    }

    /// Whether a client understands interim responses, and may wait for one (RFC 9110 §10.1.1,
    /// §15.2).
    public var hasInterimResponses: Bool {
        switch self {
        case .http10: false
        case .http11, .http2: true
        }
    }

    /// Whether a request may ask for another protocol (RFC 9110 §7.8). In HTTP/2 that is an
    /// extended CONNECT, from whose `:protocol` the Upgrade field of an assembled head is made (RFC
    /// 8441); a field of that name is refused.
    public var hasUpgrade: Bool {
        switch self {
        case .http10: false
        case .http11, .http2: true
        }
    }

    /// Whether a request must name its host (RFC 9112 §3.2). In HTTP/2 that is `:authority`, from
    /// which the Host field of an assembled head is made.
    public var requiresHost: Bool {
        switch self {
        case .http10: false
        case .http11, .http2: true
        }
    }

    /// Whether content of unknown length ends with a mark of its own where no field says so: the
    /// end of the stream (RFC 9113 §8.1).
    @inlinable public var marksEnd: Bool {
        switch self {
        case .http10, .http11: false
        case .http2: true
        }
    }

    /// Whether trailers may be sent to a client that has not asked for them by TE: one of HTTP/2
    /// reads them like any other field section (RFC 9113 §8.1).
    @inlinable public var takesTrailersUnasked: Bool {
        switch self {
        case .http10, .http11: false
        case .http2: true
        }
    }

    /// The protocol whose connections carry messages of this version.
    public var carrier: HTTPCarrier {
        switch self {
        case .http10, .http11: .http1
        case .http2: .http2
        }
    }

    /// The version as start lines have it, such as `HTTP/1.1`.
    public var text: StaticString {
        switch self {
        case .http10: "HTTP/1.0"
        case .http11: "HTTP/1.1"
        case .http2: "HTTP/2.0"
        }
    }

    /// The end of a request line, with the version.
    var requestLineEnd: StaticString {
        switch self {
        case .http10: " HTTP/1.0\r\n"
        case .http11: " HTTP/1.1\r\n"
        case .http2: " HTTP/2.0\r\n"
        }
    }

    /// The line of Via for a message received in this version (RFC 9110 §7.6.3).
    @inlinable var viaLine: StaticString {
        switch self {
        case .http10: "Via: 1.0 pinfold\r\n"
        case .http11: "Via: 1.1 pinfold\r\n"
        case .http2: "Via: 2.0 pinfold\r\n"
        }
    }

    /// The beginning of the line of Via for a message received in this version.
    var viaStart: StaticString {
        switch self {
        case .http10: "Via: 1.0 "
        case .http11: "Via: 1.1 "
        case .http2: "Via: 2.0 "
        }
    }
}

/// What a connection speaks, whose messages are of one or more versions.
///
/// Heads that arrive over HTTP/2 are assembled from their pseudo-fields and fields into the form of
/// HTTP/1, as `GET /path HTTP/2.0`, `host: ` with `:authority`, and the field lines, so that the
/// same parsers read them; responses as `HTTP/2.0 200 `. What HTTP/2 forbids in a field section is
/// refused before (RFC 9113 §8.2, §8.3).
public enum HTTPCarrier: UInt8, Sendable, CaseIterable {
    /// HTTP/1.0 and HTTP/1.1.
    case http1
    case http2

    /// The version that most messages have, or all of them.
    @inlinable public var version: HTTPVersion {
        switch self {
        case .http1: .http11
        case .http2: .http2
        }
    }
}
