import HTTPCore

/// What a QUERY asks for, as a part of its cache key (draft-ietf-httpbis-safe-method-w-body):
/// a SHA-256 over its content, as received, and over the fields that describe it (Content-Type,
/// Content-Encoding and the like), also as received. Two spellings of one question are two keys.
///
/// A stored response answers requests with the same digest: nobody must be able to find two
/// contents of one digest.
public struct ContentDigest: Sendable, Hashable {
    /// 32 bytes.
    let bytes: [UInt8]

    /// Creates the digest of `SHA-256(content)`, and of each field whose name begins with
    /// `content-`, but for Content-Length, as `name:value` and a line feed, which neither can have.
    ///
    /// - Parameters:
    ///   - content: the octets, without chunked framing.
    ///   - request: the request.
    ///   - head: its bytes.
    /// - Returns: `nil` only if the library is out of memory.
    public init?(
        of content: Span<UInt8>, describedBy request: borrowing RequestHead, in head: Span<UInt8>
    ) {
        guard var whole = CredentialDigest.of(content) else { return nil }
        for index in 0..<request.fields.endIndex {
            let field = request.fields[index]
            guard field.id != .contentLength, Self.describesContent(field.name, in: head) else {
                continue
            }
            for place in field.name.indices { whole.append(ASCII.lowercased(head[place])) }
            whole.append(UInt8(ascii: ":"))
            for place in field.value.indices { whole.append(head[place]) }
            whole.append(UInt8(ascii: "\n"))
        }
        guard let digest = CredentialDigest.of(whole.span) else { return nil }
        bytes = digest
    }

    private static func describesContent(_ name: ByteRange, in head: Span<UInt8>) -> Bool {
        let prefix: StaticString = "content-"
        guard name.count > prefix.utf8CodeUnitCount else { return false }
        let start = Int(name.start)
        return (0..<prefix.utf8CodeUnitCount).allSatisfy {
            ASCII.lowercased(head[start + $0]) == prefix.utf8Start[$0]
        }
    }
}

// Which QUERY a stored response answers is the first member of its Vary key, under a name that no
// field can have.
extension VaryKey {
    /// The beginning of a key with the digest of a content: version, name, presence, length.
    private static let contentStart: [UInt8] =
        [version, UInt8(contentName.utf8CodeUnitCount)]
        + (0..<contentName.utf8CodeUnitCount).map { contentName.utf8Start[$0] }
    private static let contentName: StaticString = ":content"
    private static let presence: [UInt8] = [1, 0, 32]

    /// The key of the response to a QUERY with this content, of which this is the Vary key, or that
    /// of another content.
    public func of(content: ContentDigest) -> VaryKey {
        VaryKey(
            unchecked: Self.contentStart + Self.presence + content.bytes
                + withoutContent.dropFirst())
    }

    /// Whether it is that of the response to a QUERY with this content, and also matches the
    /// request (`matches`).
    public func matches(
        _ request: borrowing RequestHead, in head: Span<UInt8>, content: ContentDigest
    ) -> Bool {
        bytes.starts(with: Self.contentStart + Self.presence + content.bytes)
            && VaryKey(unchecked: withoutContent).matches(request, in: head)
    }

    /// The members for fields; empty without any.
    private var withoutContent: [UInt8] {
        guard bytes.starts(with: Self.contentStart) else { return bytes }
        var start = Self.contentStart.count
        start += bytes[start] == 1 ? Self.presence.count + 32 : 1
        return start < bytes.count ? [Self.version] + bytes[start...] : []
    }
}
