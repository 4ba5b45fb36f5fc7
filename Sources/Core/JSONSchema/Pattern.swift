import CRE2
import HTTPCore

/// A regular expression in a schema: ECMA 262's, as far as RE2 can match it in linear time.
/// Lookahead, lookbehind and backreferences are refused.
///
/// Unchecked: RE2's expressions may be used by several threads at once, and there is no other
/// state.
final class Pattern: @unchecked Sendable {
    /// The maximum memory in bytes, for the expression and its state during matching.
    private static let maximumMemory: Int64 = 1 << 20
    /// The maximum number of instructions in the compiled expression.
    private static let maximumSize = 1000

    private let pattern: OpaquePointer
    /// The number of instructions in the compiled expression: the maximum work per byte.
    let size: Int

    /// - Throws: why it is refused, as a clause.
    init(_ expression: String) throws(PatternError) {
        var translation = PatternTranslation(expression)
        let translated = try translation.translate()
        var message = [CChar](repeating: 0, count: 120)
        let created = translated.withCString { text in
            re2_pattern_create(
                text, translated.utf8.count, Self.maximumMemory, &message, message.count)
        }
        guard let created else {
            let words = message.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
            throw PatternError("RE2 says: \(String(decoding: words, as: UTF8.self))")
        }
        pattern = created
        size = re2_pattern_size(created)
        guard size <= Self.maximumSize else {
            throw PatternError("it has more than \(Self.maximumSize) steps")
        }
    }

    deinit { re2_pattern_destroy(pattern) }

    /// Whether it matches anywhere in a text.
    func matches(_ text: UnsafeRawBufferPointer) -> Bool {
        re2_pattern_matches(pattern, text.baseAddress, text.count)
    }
}

/// Why a regular expression is refused.
struct PatternError: Error {
    let reason: String
    init(_ reason: String) { self.reason = reason }
}

/// Translates an ECMA 262 expression to RE2's syntax, and refuses what has a different meaning
/// there.
private struct PatternTranslation {
    private let characters: [Character]
    private var position = 0
    private var output = ""

    init(_ expression: String) { characters = expression.unicodeScalars.map { Character($0) } }

    private static let space = "\\t\\n\\v\\f\\r\\x{a0}\\x{feff}\\x{2028}\\x{2029}\\p{Zs}"
    private static let syntax = Set("^$\\.*+?()[]{}|/-")

    mutating func translate() throws(PatternError) -> String {
        while let character = next() {
            switch character {
            case "\\": try escape(isInClass: false)
            case "[": try characterClass()
            case ".": output += "[^\\n\\r\\x{2028}\\x{2029}]"
            case "(": try group()
            default: output.append(character)
            }
        }
        return output
    }

    private mutating func next() -> Character? {
        guard position < characters.count else { return nil }
        position += 1
        return characters[position - 1]
    }

    private var upcoming: Character? {
        position < characters.count ? characters[position] : nil
    }

    private mutating func group() throws(PatternError) {
        output += "("
        guard upcoming == "?" else { return }
        position += 1
        switch next() {
        case ":": output += "?:"
        case "=", "!": throw PatternError("lookahead takes more than linear time")
        case "<":
            if upcoming == "=" || upcoming == "!" {
                throw PatternError("lookbehind takes more than linear time")
            }
            output += "?P<"
        default: throw PatternError("ECMA 262 has no group of this kind")
        }
    }

    private mutating func characterClass() throws(PatternError) {
        output += "["
        if upcoming == "^" {
            position += 1
            output += "^"
        }
        // RE2 treats a bracket at the start as a character; in ECMA 262 the class is empty.
        guard upcoming != "]" else { throw PatternError("an empty character class") }
        while let character = next() {
            switch character {
            case "]":
                output += "]"
                return
            case "\\": try escape(isInClass: true)
            case "[": output += "\\["
            default: output.append(character)
            }
        }
        throw PatternError("an unterminated character class")
    }

    private mutating func escape(isInClass: Bool) throws(PatternError) {
        guard let character = next() else { throw PatternError("it ends with a backslash") }
        switch character {
        case "d", "D", "w", "W", "t", "n", "v", "f", "r": output += "\\\(character)"
        case "s": output += isInClass ? Self.space : "[\(Self.space)]"
        case "S":
            guard !isInClass else { throw PatternError("\\S in a class") }
            output += "[^\(Self.space)]"
        case "b": output += isInClass ? "\\x08" : "\\b"
        case "B" where !isInClass: output += "\\B"
        case "0":
            if let upcoming, upcoming.isASCII, upcoming.isNumber {
                throw PatternError("an octal escape")
            }
            output += "\\x00"
        case "x": try codePoint(digits: 2)
        case "u": try codePoint(digits: 4)
        case "c": try control()
        case "p", "P":
            guard upcoming == "{" else { throw PatternError("\\p without {") }
            output += "\\\(character)"
        case "1"..."9": throw PatternError("a backreference takes more than linear time")
        default:
            guard Self.syntax.contains(character) else {
                throw PatternError("\\\(character) is not an ECMA 262 escape")
            }
            output += "\\\(character)"
        }
    }

    private mutating func control() throws(PatternError) {
        guard let letter = next()?.asciiValue, letter | 0x20 >= 0x61, letter | 0x20 <= 0x7A else {
            throw PatternError("\\c without a letter")
        }
        output += "\\x{" + String(letter & 0x1F, radix: 16) + "}"
    }

    private mutating func codePoint(digits: Int) throws(PatternError) {
        var code = try hex(digits)
        if digits == 4, 0xD800..<0xDC00 ~= code {
            guard next() == "\\", next() == "u", case let low = try hex(4), 0xDC00..<0xE000 ~= low
            else { throw PatternError("half a surrogate pair") }
            code = 0x10000 + (code - 0xD800) << 10 + (low - 0xDC00)
        }
        guard Unicode.Scalar(code) != nil else { throw PatternError("half a surrogate pair") }
        output += "\\x{" + String(code, radix: 16) + "}"
    }

    private mutating func hex(_ digits: Int) throws(PatternError) -> UInt32 {
        var value: UInt32 = 0
        for _ in 0..<digits {
            guard let digit = next()?.asciiValue.flatMap(ASCII.hexValue) else {
                throw PatternError("an escape without its \(digits) hex digits")
            }
            value = value << 4 | UInt32(digit)
        }
        return value
    }
}
