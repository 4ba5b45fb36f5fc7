/// A token that gives access to something, and the file from which it was read (RFC 6750).
package struct BearerToken: Sendable, Equatable {
    /// The absolute path of the file.
    package var path: String
    /// The token: the file's bytes without leading and trailing white space; never empty.
    package var bytes: [UInt8]

    /// Creates a token that has been read.
    package init(path: String, bytes: [UInt8]) {
        self.path = path
        self.bytes = bytes
    }

    /// Reads the content of a file with one token.
    /// - Throws: if that is not one token of visible ASCII characters (RFC 6750 §2.1).
    package init(path: String, content: [UInt8]) throws(BearerTokenError) {
        func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || 0x09...0x0D ~= byte }
        let bytes = Array(
            content.drop(while: isSpace).reversed().drop(while: isSpace).reversed())
        guard !bytes.isEmpty else { throw .empty }
        guard bytes.count <= 4096, bytes.allSatisfy({ 0x21...0x7E ~= $0 }) else {
            throw .malformed
        }
        self.init(path: path, bytes: bytes)
    }

    /// Whether the value of an Authorization field is `Bearer` with this token. Takes the same time
    /// whichever part of the token is right.
    package func isIn(_ authorization: Span<UInt8>) -> Bool {
        let scheme = "bearer ".utf8
        guard authorization.count > scheme.count else { return false }
        for (index, byte) in scheme.enumerated() {
            let given = authorization[index]
            let lowered = 0x41...0x5A ~= given ? given | 0x20 : given
            guard lowered == byte else { return false }
        }
        var start = scheme.count
        while start < authorization.count, authorization[start] == 0x20 { start += 1 }
        return isEqual(to: authorization.extracting(start...))
    }

    /// Whether a value is this token. Takes the same time whichever part of it is right.
    package func isEqual(to value: Span<UInt8>) -> Bool {
        guard value.count == bytes.count else { return false }
        var difference: UInt8 = 0
        for index in bytes.indices { difference |= bytes[index] ^ value[index] }
        return difference == 0
    }
}

/// Why a file has no token.
package enum BearerTokenError: Error, Equatable {
    case empty
    /// Not one token, or a longer one than 4096 characters.
    case malformed

    /// What is wrong with a file.
    /// - Parameter path: the file as messages name it.
    package func text(ofFile path: String) -> String {
        switch self {
        case .empty: "\(path) is empty"
        case .malformed: "\(path) has no valid token"
        }
    }

    /// What is expected in its place.
    package static let expected = "a file with one token of visible ASCII characters"
}
