import HTTPCore

/// A single-pass parser of challenges. It follows the grammar, and goes beyond it where the output
/// of real devices has only one possible meaning, which is how curl and wget read it.
///
/// - An unquoted value extends to the next comma or to the next parameter: `realm=my realm`,
///   `nonce=YWJj==`. It may be empty.
/// - No comma is required before a parameter (`realm="a" nonce="b"`), but one is required before a
///   scheme.
/// - `qop=auth,auth-int` is a single parameter even without quotation marks.
/// - For Basic, anything that is not a parameter (`realm="x"; charset="UTF-8"`, `"my realm"`) is
///   skipped up to the next comma, because the answer depends on no such text. If a scheme follows
///   without a comma (`Basic realm="a" Digest realm="b", nonce="c"`), its parameters are skipped,
///   too.
/// - If a parameter is repeated, the last value is used, as in curl. The exception is the realm,
///   which decides whose credentials are sent: two different realms are an error.
struct ChallengeReader {
    private let bytes: [UInt8]
    private var position = 0

    init(_ bytes: [UInt8]) throws(ChallengeError) {
        self.bytes = bytes
        guard bytes.count <= HTTPChallenge.maximumBytes else { throw .tooLarge }
    }

    mutating func challenges() throws(ChallengeError) -> [HTTPChallenge] {
        var found: [HTTPChallenge] = []
        skip(alsoCommas: true)
        while position < bytes.count {
            guard found.count < HTTPChallenge.maximumChallenges else { throw .tooLarge }
            var challenge = HTTPChallenge(scheme: try token())
            let isBasic = challenge.scheme == "basic"
            let hasSpace = peek == 0x20 || peek == 0x09
            skip()
            if let peek, peek != UInt8(ascii: ",") {
                guard hasSpace else { throw .unexpected(at: position) }
                challenge.token68 = takeToken68()
                if challenge.token68 == nil {
                    try parameters(into: &challenge.parameterBytes, ofBasic: isBasic)
                }
            } else if hasComma {
                // `Scheme , name=value`: the first member of the list is empty.
                try parameters(into: &challenge.parameterBytes, ofBasic: isBasic)
            }
            found.append(challenge)
            guard position == bytes.count || hasComma else { throw .unexpected(at: position) }
            skip(alsoCommas: true)
        }
        return found
    }

    mutating func info() throws(ChallengeError) -> [String: [UInt8]] {
        var found: [String: [UInt8]] = [:]
        try parameters(into: &found)
        skip(alsoCommas: true)
        guard position == bytes.count else { throw .unexpected(at: position) }
        return found
    }

    /// Reads parameters up to the comma before a token that is not followed by `=`, which is the
    /// next scheme. Without a comma, the next word must be a parameter, except for Basic.
    private mutating func parameters(
        into found: inout [String: [UInt8]], ofBasic isBasic: Bool = false
    ) throws(ChallengeError) {
        // Whether what follows belongs to a scheme without a comma before it.
        var isForeign = false
        var lastIsBareProtection = false
        while true {
            let start = position
            skip(alsoCommas: true)
            guard position < bytes.count else { return }
            let hasSeparator = bytes[start..<position].contains(UInt8(ascii: ","))
            if isBasic, let peek, !ASCII.isToken(peek) {
                if peek == UInt8(ascii: ";") { position += 1 } else { skipMember() }
                continue
            }
            let name = try token().lowercasedASCII
            skip()
            guard peek == UInt8(ascii: "=") else {
                if lastIsBareProtection, position == bytes.count || hasComma,
                    let protection = DigestChallenge.Protection(rawValue: name)
                {
                    found["qop"]?.append(contentsOf: ",\(protection.rawValue)".utf8)
                    continue
                }
                if isBasic, !hasSeparator {
                    isForeign = true
                    skipMember()
                    continue
                }
                position = start
                return
            }
            position += 1
            skip()
            let isBare = peek != UInt8(ascii: "\"")
            let value = isBare ? unquoted() : try quoted()
            lastIsBareProtection = isBare && name == "qop"
            if !isForeign { try add(value, to: name, in: &found) }
            skip()
            guard position == bytes.count || hasComma || isAtParameter || isBasic else {
                throw .unexpected(at: position)
            }
        }
    }

    private func add(
        _ value: [UInt8], to name: String, in found: inout [String: [UInt8]]
    ) throws(ChallengeError) {
        guard found.count < HTTPChallenge.maximumParameters else { throw .tooLarge }
        if let before = found.updateValue(value, forKey: name), before != value, name == "realm" {
            throw .duplicate(name)
        }
    }

    /// Skips text that is not a parameter, up to a comma outside quotation marks.
    private mutating func skipMember() {
        var isQuoted = false
        while let peek, isQuoted || !hasComma {
            if peek == UInt8(ascii: "\"") { isQuoted.toggle() }
            // An escaped character does not end the string.
            position += isQuoted && peek == UInt8(ascii: "\\") ? 2 : 1
        }
        position = min(position, bytes.count)
    }

    /// Reads token68 characters and trailing `=`, up to a comma or the end. Returns `nil` and reads
    /// nothing if something else follows.
    private mutating func takeToken68() -> String? {
        let start = position
        while let peek, Self.isToken68(peek) { position += 1 }
        guard position > start else { return nil }
        while peek == UInt8(ascii: "=") { position += 1 }
        let text = String(decoding: bytes[start..<position], as: UTF8.self)
        skip()
        guard position == bytes.count || hasComma else {
            position = start
            return nil
        }
        return text
    }

    private mutating func quoted() throws(ChallengeError) -> [UInt8] {
        position += 1
        var text: [UInt8] = []
        while let byte = peek {
            position += 1
            switch byte {
            case UInt8(ascii: "\""): return text
            case UInt8(ascii: "\\"):
                guard let escaped = peek, Self.isQuotable(escaped) else { break }
                position += 1
                text.append(escaped)
                continue
            case _ where Self.isQuotable(byte):
                text.append(byte)
                continue
            default: break
            }
            throw position == bytes.count ? .unendedString : .unexpected(at: position - 1)
        }
        throw .unendedString
    }

    /// Reads up to a comma, a quotation mark, the end, or the space before what looks like a
    /// parameter.
    private mutating func unquoted() -> [UInt8] {
        let start = position
        var end = position
        while let peek, !hasComma, peek != UInt8(ascii: "\""), Self.isQuotable(peek) {
            if ASCII.isWhitespace(peek) {
                skip()
                if isAtParameter { break }
            } else {
                position += 1
                end = position
            }
        }
        return Array(bytes[start..<end])
    }

    private mutating func token() throws(ChallengeError) -> String {
        let start = position
        while let peek, ASCII.isToken(peek) { position += 1 }
        guard position > start else { throw .unexpected(at: position) }
        return String(decoding: bytes[start..<position], as: UTF8.self)
    }

    private mutating func skip(alsoCommas: Bool = false) {
        while let peek, ASCII.isWhitespace(peek) || alsoCommas && hasComma { position += 1 }
    }

    private var peek: UInt8? { position < bytes.count ? bytes[position] : nil }
    private var hasComma: Bool { peek == UInt8(ascii: ",") }

    /// Whether a name immediately followed by `=` is next.
    private var isAtParameter: Bool {
        var end = position
        while end < bytes.count, ASCII.isToken(bytes[end]) { end += 1 }
        return end > position && end < bytes.count && bytes[end] == UInt8(ascii: "=")
    }

    private static func isQuotable(_ byte: UInt8) -> Bool {
        byte == 0x09 || byte >= 0x20 && byte != 0x7F
    }

    private static func isToken68(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x2B, 0x2D...0x2F, 0x5F, 0x7E: true
        default: ASCII.isLetter(byte) || ASCII.isDigit(byte)
        }
    }
}
