/// The secret that requests which change something must show (`admin.tokenFile`).
package struct AdminToken: Sendable {
    /// The fewest bytes that a token may have.
    package static let minimumBytes = 16
    /// The most bytes that a token may have.
    package static let maximumBytes = 1024

    private let bytes: [UInt8]

    /// Why the content of a token file is no token.
    package enum Rejection: Error, Sendable, Equatable {
        /// Fewer bytes than `minimumBytes`.
        case tooShort
        /// More bytes than `maximumBytes`.
        case tooLong
        /// A byte that a bearer token cannot have (RFC 6750 section 2.1).
        case badByte
    }

    /// The token of a file's content: its bytes without the white space at both ends.
    package init(file content: [UInt8]) throws(Rejection) {
        let isSpace: (UInt8) -> Bool = { $0 == 0x20 || ($0 >= 0x09 && $0 <= 0x0d) }
        let start = content.firstIndex { !isSpace($0) } ?? content.endIndex
        let end = content.lastIndex { !isSpace($0) }.map { $0 + 1 } ?? start
        let token = Array(content[start..<end])
        guard token.count >= AdminToken.minimumBytes else { throw .tooShort }
        guard token.count <= AdminToken.maximumBytes else { throw .tooLong }
        guard token.allSatisfy(AdminToken.isTokenByte) else { throw .badByte }
        bytes = token
    }

    /// Whether an `Authorization` value is `Bearer` and this token. Takes the same time whatever
    /// part of the token is right.
    package func authorizes(_ authorization: String?) -> Bool {
        guard let authorization else { return false }
        let parts = authorization.split(separator: " ", maxSplits: 1)
        guard parts.count == 2, parts[0].lowercased() == "bearer" else { return false }
        let given = Array(parts[1].utf8.drop { $0 == 0x20 })
        guard given.count == bytes.count else { return false }
        var difference: UInt8 = 0
        for (one, other) in zip(given, bytes) { difference |= one ^ other }
        return difference == 0
    }

    /// `b64token`, and `=` anywhere (RFC 6750 section 2.1).
    private static func isTokenByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"):
            true
        case UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "~"),
            UInt8(ascii: "+"), UInt8(ascii: "/"), UInt8(ascii: "="):
            true
        default: false
        }
    }
}
