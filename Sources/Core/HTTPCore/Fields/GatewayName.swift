/// The name by which the gateway speaks of itself in Via, Cache-Status and Proxy-Status: its own,
/// or a pseudonym (RFC 9110 §7.6.3) where it must not say what it is.
public struct GatewayName: Sendable, Equatable {
    public let bytes: [UInt8]

    /// - Parameter text: a token that begins with a letter; see ``isValid(_:)``.
    public init(_ text: String) { bytes = Array(text.utf8) }

    public var text: String { String(decoding: bytes, as: UTF8.self) }

    /// The name where no other is configured.
    public static let own = GatewayName("pinfold")

    /// The most bytes of a name.
    public static let maximumBytes = 64

    /// Whether a text may be a name: a token for Via, and one for structured fields too (RFC 9651
    /// §3.3.4), which begins with a letter.
    public static func isValid(_ text: String) -> Bool {
        guard let first = text.utf8.first, text.utf8.count <= maximumBytes else { return false }
        return ASCII.isLetter(first) && text.utf8.allSatisfy(ByteClass.isToken)
    }
}

/// A pseudonym with the mark by which this process knows what it has forwarded: others may use the
/// same name.
public struct ViaEntry: Sendable {
    private let name: GatewayName
    private let mark: ViaMark

    public init(_ name: GatewayName, _ mark: ViaMark) {
        self.name = name
        self.mark = mark
    }

    /// The most bytes of the line.
    public static let maximumLineBytes = GatewayName.maximumBytes + ViaMark.bytes + 16

    /// Appends the line of Via for a message received in a version: `Via: 1.1 name (mark)`.
    public func append(received version: HTTPVersion, to writer: inout HeadWriter) {
        writer.append(version.viaStart)
        writer.append(name.bytes.span)
        writer.append(" ")
        writer.append(mark.comment.span)
        writer.appendLineEnd()
    }
}

/// What a process puts into the comment of its members of Via: chosen at random when it starts, so
/// that it says nothing of the product.
public struct ViaMark: Sendable, Equatable {
    /// The bytes of the comment, with its parentheses.
    static let bytes = 18
    let comment: [UInt8]

    public init(random: UInt64) {
        comment = Array("(\(String(hexadecimal: random, digits: 16)))".utf8)
    }
}

/// Recognizes in Via which members a gateway has written.
public struct ViaPasses: Sendable {
    private let names: [GatewayName]
    private let mark: ViaMark

    /// - Parameters:
    ///   - names: all names that the gateway uses.
    ///   - mark: the one of its process.
    public init(names: [GatewayName], mark: ViaMark) {
        self.names = names
        self.mark = mark
    }

    /// How many members of a line are the gateway's: those with its mark, and those with one of its
    /// names and no mark, because proxies may remove comments (RFC 9110 §7.6.3). Another mark is
    /// that of another gateway with the same name.
    public func count(in value: Span<UInt8>) -> Int {
        var count = 0
        var members = ListMembers(value)
        while let member = members.next(in: value) {
            let words = value.extracting(member)
            let start = Self.afterSpace(words, Self.afterWord(words, 0))
            let end = Self.afterWord(words, start)
            let comment = words.extracting(Self.afterSpace(words, end)..<words.count)
            let isOwn =
                comment.isEmpty
                ? isNamed(words.extracting(start..<end))
                : comment.equalsIgnoringCase(mark.comment.span)
            if isOwn { count += 1 }
        }
        return count
    }

    private func isNamed(_ name: Span<UInt8>) -> Bool {
        for own in names where name.equalsIgnoringCase(own.bytes.span) { return true }
        return false
    }

    private static func afterWord(_ bytes: Span<UInt8>, _ start: Int) -> Int {
        var index = start
        while index < bytes.count, !ASCII.isWhitespace(bytes[index]) { index += 1 }
        return index
    }

    private static func afterSpace(_ bytes: Span<UInt8>, _ start: Int) -> Int {
        var index = start
        while index < bytes.count, ASCII.isWhitespace(bytes[index]) { index += 1 }
        return index
    }
}
