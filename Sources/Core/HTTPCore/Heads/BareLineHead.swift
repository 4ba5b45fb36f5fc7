/// A response head whose lines all end in a bare line feed, which old servers send and clients
/// accept (RFC 9112 §2.2).
///
/// It is rewritten with CRLF before anything is read from it, and the result is parsed as strictly
/// as any other head. So no client receives a bare line feed, and no other part of the gateway
/// needs to handle them. A head that mixes both line endings is refused: that is what an injected
/// line looks like. Requests with bare line feeds are always refused.
public enum BareLineHead {
    /// The size of a head with CRLF in place of each line feed, in bytes.
    public static func rewrittenBytes(_ head: Span<UInt8>) -> Int {
        var count = head.count
        for index in head.indices where head[index] == Byte.lineFeed { count += 1 }
        return count
    }

    /// Appends the head with CRLF in place of each line feed.
    public static func rewrite(_ head: Span<UInt8>, to writer: inout HeadWriter) {
        for index in head.indices {
            if head[index] == Byte.lineFeed { writer.append(byte: Byte.carriageReturn) }
            writer.append(byte: head[index])
        }
    }

    /// Finds the line feed that ends the head, searching from `position`, which is at the beginning
    /// of a line or inside one; `nil` if it has not arrived yet. Moves `position` to where the
    /// search continues when there are more bytes.
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
