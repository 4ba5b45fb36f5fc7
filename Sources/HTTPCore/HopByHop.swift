extension FieldIDSet {
    /// Fields that end at this hop whether or not Connection names them (RFC 9110 §7.6.1, §11.7):
    /// Connection, Proxy-Connection, Keep-Alive, TE, Transfer-Encoding, Upgrade, HTTP2-Settings,
    /// and those of proxy authentication.
    package static let hopByHop: FieldIDSet = FieldIDSet(rawValue: 0)
    /// Fields that must not be taken from a trailer section (RFC 9110 §6.5.1): framing, routing,
    /// authentication, request modifiers, response control, and those that say what the content is.
    package static let forbiddenInTrailers: FieldIDSet = FieldIDSet(rawValue: 0)
}
