extension MessageFraming {
    /// The framing of a response that has Transfer-Encoding, as a user agent reads it: nobody is
    /// behind it whom another reading could mislead, and what was read in such a way ends its
    /// connection.
    ///
    /// - The coding counts where there is Content-Length, too (RFC 9112 §6.3).
    /// - `identity`, a coding of RFC 2616 that old servers send, is none: the length counts then,
    ///   or the connection's end.
    ///
    /// - Parameter persists: Becomes false where the connection must not be used again.
    @inline(never)
    static func readAsUserAgent(
        _ fields: borrowing FieldSection, _ version: HTTPVersion, _ bytes: HeadBytes,
        persists: inout Bool
    ) throws(WireError) -> BodyFraming? {
        guard version != .http10 else { throw .transferEncodingInHTTP10 }
        let isChunked = try checkTransferEncoding(fields, bytes, passesOverIdentity: true)
        if !isChunked || fields.contains(.contentLength) { persists = false }
        return isChunked ? .chunked : try length(fields, bytes)
    }
}
