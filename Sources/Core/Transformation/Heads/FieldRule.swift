import HTTPCore
import PinfoldConfiguration

/// The names and values that header rules may write. What the configuration file says was held to
/// more than this before; here stands what keeps a head well formed and its framing as it was,
/// wherever the rules are from.
enum FieldRule {
    /// Fields that decide where a message ends, which way it goes, or what becomes of the
    /// connection. No rule changes them.
    private static let untouchable = FieldIDSet.hopByHop.union(
        FieldIDSet([
            .host, .trailer, .contentLength, .expect, .maxForwards, .via, .proxyConnection,
        ])
    ).ids.map { HeadName("\($0.name)").lowercase }

    /// A name that a rule may have; nil for what is no token, an untouchable field, one in disguise
    /// (`_` for `-`), and `close`, which Connection could not name apart from its option.
    static func name(_ text: String) -> HeadName? {
        let name = HeadName(text)
        let plain = name.lowercase.map { $0 == UInt8(ascii: "_") ? UInt8(ascii: "-") : $0 }
        guard !plain.isEmpty, plain.allSatisfy(ByteClass.isToken), !untouchable.contains(plain),
            plain != Array("close".utf8)
        else { return nil }
        return name
    }

    /// A value that may be written, without whitespace around it; nil for one that no field has.
    static func value(_ text: String) -> [UInt8]? {
        let bytes = Array(text.utf8)
        guard bytes.allSatisfy(ByteClass.isFieldValue) else { return nil }
        guard let first = bytes.firstIndex(where: { !ASCII.isWhitespace($0) }),
            let last = bytes.lastIndex(where: { !ASCII.isWhitespace($0) })
        else { return [] }
        return Array(bytes[first...last])
    }

    /// The names of a list that a rule may have.
    static func names(_ texts: [String]) -> [HeadName] { texts.compactMap(name) }

    /// The pairs of names.
    static func renames(_ pairs: [NamedValue]) -> [(from: HeadName, to: HeadName)] {
        pairs.compactMap { pair in
            guard let from = name(pair.name), let to = name(pair.value) else { return nil }
            return (from, to)
        }
    }

    /// The lines that are written.
    static func lines(_ pairs: [NamedValue]) -> [(name: HeadName, value: [UInt8])] {
        pairs.compactMap { pair in
            guard let name = name(pair.name), let value = value(pair.value) else { return nil }
            return (name, value)
        }
    }
}
