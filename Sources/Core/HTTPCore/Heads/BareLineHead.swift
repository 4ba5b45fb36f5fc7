/// A response head whose lines all end in a bare line feed, which old servers send and clients read
/// (RFC 9112 §2.2).
///
/// It is written anew with CRLF before anything is read from it, and what was written is parsed as
/// strictly as any other head. So no client sees a bare line feed, and no other part of the gateway
/// has to know of them. A head that mixes both line ends is refused: that is what an injected line
/// looks like. Requests with bare line feeds are refused always.
package enum BareLineHead {
    /// Bytes of a head with CRLF in place of each line feed.
    package static func rewrittenBytes(_ head: Span<UInt8>) -> Int {
        var count = head.count
        for index in head.indices where head[index] == Byte.lineFeed { count += 1 }
        return count
    }

    /// Appends the head with CRLF in place of each line feed.
    package static func rewrite(_ head: Span<UInt8>, to writer: inout HeadWriter) {
        for index in head.indices {
            if head[index] == Byte.lineFeed { writer.append(byte: Byte.carriageReturn) }
            writer.append(byte: head[index])
        }
    }

    /// The line feed that ends the head, from `position` on, where a line begins or goes on; nil
    /// when it has not come yet. Moves `position` on to where the search goes on with more bytes.
    static func end(
        _ bytes: HeadBytes, from position: inout Int
    ) throws(WireError) -> Int? {
        while position < bytes.count {
            let byte = bytes[position]
            guard byte != Byte.carriageReturn else { throw .mixedLineEnds }
            if byte == Byte.lineFeed, bytes[position &- 1] == Byte.lineFeed { return position }
            position &+= 1
        }
        return nil
    }
}
