/// The protocol according to a client's first bytes.
package enum FirstBytes: Equatable {
    /// More bytes are needed.
    case unknown
    case tls
    case other

    /// A record of type handshake and version 3.x, which carries a ClientHello (RFC 8446 §5.1).
    private static let handshakeRecord: [UInt8] = [22, 3]

    /// - Parameter bytes: what has arrived so far; `nil` for nothing.
    package init(_ bytes: UnsafeRawBufferPointer?) {
        let seen = bytes?.prefix(Self.handshakeRecord.count)
        guard let seen, seen.count > 0 else {
            self = .unknown
            return
        }
        guard Self.handshakeRecord.starts(with: seen) else {
            self = .other
            return
        }
        self = seen.count == Self.handshakeRecord.count ? .tls : .unknown
    }
}
