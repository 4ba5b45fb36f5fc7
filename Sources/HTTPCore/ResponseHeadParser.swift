/// What the request was, as far as it decides how its response ends (RFC 9112 §6.3).
package struct ResponseContext: Sendable {
    /// The request's method.
    package var method: Method
    /// Whether the request sent upstream asked for an upgrade; else 101 is a fault.
    package var allowsSwitch: Bool

    /// The context of a request.
    package init(method: Method, allowsSwitch: Bool = false) {
        self.method = method
        self.allowsSwitch = allowsSwitch
    }
}

/// Parses response heads (RFC 9112 §4 to §6), as strictly as requests.
package struct ResponseHeadParser: Sendable {
    /// The limits that heads are held to.
    package let limits: HeadLimits

    /// A parser before the first byte of a head.
    package init(limits: HeadLimits = HeadLimits()) { self.limits = limits }

    /// Whether some byte of an unfinished head has been seen.
    package var isWithinHead: Bool { false }

    /// Reads on in the head that begins at the first of `bytes`; as
    /// ``RequestHeadParser/parse(_:into:)``.
    package mutating func parse(
        _ bytes: Span<UInt8>, answering context: ResponseContext, into head: inout ResponseHead
    ) throws(WireError) -> ParseProgress {
        .needMore
    }

    /// Forgets the head that was begun.
    package mutating func reset() {}
}
