import HTTPCore
import PinfoldConfiguration

/// The names and values that header rules may write. The configuration file's rules have already
/// been checked more strictly; this ensures that a head stays well-formed and its framing
/// unchanged, wherever the rules come from.
enum FieldRule {
    /// The fields that determine where a message ends, where it goes, or what happens to the
    /// connection. No rule changes them.
    private static let untouchable = FieldIDSet.hopByHop.union(
        FieldIDSet([
            .host, .trailer, .contentLength, .expect, .maxForwards, .via, .proxyConnection,
        ])
    ).ids.map { HeadName("\($0.name)").lowercase }

    /// A name that a rule may have; `nil` if it is not a token, or is an untouchable field, one in
    /// disguise (`_` for `-`), or `close`, which Connection could not distinguish from its option.
    static func name(_ text: String) -> HeadName? {
        let name = HeadName(text)
        let plain = name.lowercase.map { $0 == UInt8(ascii: "_") ? UInt8(ascii: "-") : $0 }
        guard !plain.isEmpty, plain.allSatisfy(ByteClass.isToken), !untouchable.contains(plain),
            plain != Array("close".utf8)
        else { return nil }
        return name
    }

    /// A value that may be written, without surrounding whitespace; `nil` if it is not a valid
    /// field value.
    static func value(_ text: String) -> [UInt8]? {
        let bytes = Array(text.utf8)
        guard bytes.allSatisfy(ByteClass.isFieldValue) else { return nil }
        guard let first = bytes.firstIndex(where: { !ASCII.isWhitespace($0) }),
            let last = bytes.lastIndex(where: { !ASCII.isWhitespace($0) })
        else { return [] }
        return Array(bytes[first...last])
    }

    /// The names in a list that a rule may have.
    static func names(_ texts: [String]) -> [HeadName] { texts.compactMap(name) }

    /// The pairs of names.
    static func renames(_ pairs: [NamedValue]) -> [(from: HeadName, to: HeadName)] {
        pairs.compactMap { pair in
            guard let from = name(pair.name), let to = name(pair.value) else { return nil }
            return (from, to)
        }
    }

    /// The lines to write.
    static func lines(_ pairs: [NamedValue]) -> [(name: HeadName, value: [UInt8])] {
        pairs.compactMap { pair in
            guard let name = name(pair.name), let value = value(pair.value) else { return nil }
            return (name, value)
        }
    }
}
