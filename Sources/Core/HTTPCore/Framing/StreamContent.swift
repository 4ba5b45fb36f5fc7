// What the end of a stream says about a message that came over HTTP/2 (RFC 9113 §8.1): whether
// content follows its head is not a matter of its fields, and Content-Length is at most a promise
// that the content must keep.

extension RequestHead {
    /// Completes a head that was assembled from HTTP/2: content of a length that no field states
    /// ends with its stream, which ``framing`` then says (`chunked`). Nothing follows the head of a
    /// CONNECT: what the stream carries is the tunnel's.
    ///
    /// - Parameter follows: whether the stream goes on after the head (it had no END_STREAM).
    public mutating func decideContent(follows: Bool) throws(WireError) {
        guard method != .connect else { return }
        try framing.settle(follows: follows)
        guard method != .trace || framing == .none else { throw .contentInTrace }
    }
}

extension ResponseHead {
    /// Completes the head of a final response that was assembled from HTTP/2: without
    /// Content-Length, the content is empty or ends with its stream.
    ///
    /// - Parameter follows: whether the stream goes on after the head (it had no END_STREAM).
    public mutating func decideContent(follows: Bool) throws(WireError) {
        // HEAD, 204 and 304: whether the stream goes on for an empty end does not matter.
        guard framing != .none else { return }
        try framing.settle(follows: follows)
    }
}

extension BodyFraming {
    /// Makes what the fields say agree with the stream. A length other than 0 that nothing follows
    /// is content cut short.
    fileprivate mutating func settle(follows: Bool) throws(WireError) {
        switch self {
        case .none, .untilClose: if follows { self = .chunked }
        case .chunked: if !follows { self = .length(0) }
        case .length(0): break
        case .length: guard follows else { throw .truncatedBody }
        }
    }
}
