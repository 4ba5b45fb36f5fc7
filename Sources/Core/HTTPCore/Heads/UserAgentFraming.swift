extension MessageFraming {
    /// The framing of a response that has Transfer-Encoding, for a user agent: it forwards to
    /// nobody who could be misled by another reading, and the connection is closed after such a
    /// response.
    ///
    /// - Transfer-Encoding takes precedence over Content-Length (RFC 9112 §6.3).
    /// - `identity`, a coding of RFC 2616 that old servers send, is ignored: the length applies
    ///   then, or the end of the connection.
    ///
    /// - Parameter persists: set to false if the connection must not be reused.
    @inline(never)
    static func readAsUserAgent(
        _ fields: borrowing FieldSection, _ version: HTTPVersion, _ bytes: HeadBytes,
        persists: inout Bool
    ) throws(WireError) -> BodyFraming? {
        guard version.hasTransferCodings else { throw .transferEncodingInHTTP10 }
        let isChunked = try checkTransferEncoding(fields, bytes, passesOverIdentity: true)
        if !isChunked || fields.contains(.contentLength) { persists = false }
        return isChunked ? .chunked : try length(fields, bytes)
    }
}
