/// How a transparent listener learns where a connection was going.
package enum OriginalAddressSource: String, Sendable, Equatable, CaseIterable {
    /// A rule with the target REDIRECT has led it here; connection tracking knows its destination.
    case redirect
    /// A rule with the target TPROXY has; the destination is the connection's local address.
    case tproxy
}

/// What a transparent listener does that is up to it.
package struct TransparentConfiguration: Sendable, Equatable {
    /// How it learns where connections were going.
    package var source = OriginalAddressSource.redirect
    /// The ports at whose servers the server speaks first, so that nothing is expected of clients:
    /// their connections are tunnelled to the address.
    package var serverFirst: [UInt16] = []

    package init() {}
}
