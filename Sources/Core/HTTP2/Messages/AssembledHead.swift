import HTTPCore

/// A request's head that was assembled from its fields (RFC 9113 §8.3.1).
public struct AssembledRequest: Sendable, Equatable {
    /// What a request asks for.
    public enum Kind: Sendable, Equatable {
        case ordinary
        /// A tunnel (RFC 9113 §8.5).
        case tunnel
        /// Another protocol on the stream (RFC 8441 §4), which
        /// ``AssembledRequest/protocolName`` names. The head is that of an upgrade in HTTP/1: GET
        /// with Connection and Upgrade.
        case upgrade
    }

    /// The length of the head in bytes, including its empty line.
    public var count: Int
    public var kind: Kind
    /// Where the value of `:protocol` is, which is also that of Upgrade.
    public var protocolName: ByteRange?
    /// Where the value of the only Priority field is (RFC 9218 §5).
    public var priority: ByteRange?
    /// The content's length in bytes, if it was announced.
    public var contentLength: Int64?
    /// The fields that must not enter a table where they are forwarded.
    public var sensitive: SensitiveNames
}

/// A response's head that was assembled from its fields (RFC 9113 §8.3.2).
public struct AssembledResponse: Sendable, Equatable {
    /// The length of the head in bytes, including its empty line.
    public var count: Int
    public var status: UInt16
    /// The content's length in bytes, if it was announced.
    public var contentLength: Int64?
    /// The fields that must not enter a table where they are forwarded.
    public var sensitive: SensitiveNames
}
