import Documents
import HTTPCore
import PinfoldConfiguration

/// Applies rules to queries, parameter by parameter.
///
/// Names are compared after percent-decoding, and with `+` as a space. Parameters that no rule
/// names keep their bytes; what is written is escaped by the rules of ``QueryString``.
struct QueryChanges: Sendable {
    enum Outcome: Equatable {
        case kept
        /// The query is removed.
        case removed
        /// The new text after the question mark.
        case replaced([UInt8])
    }

    private let removed: [[UInt8]]
    private let renamed: [(from: [UInt8], to: Name)]
    private let set: [Pair]
    private let added: [Pair]
    private let defaults: [Pair]

    /// A name as it is compared and as it is written.
    struct Name {
        let plain: [UInt8]
        let escaped: [UInt8]

        init(_ text: String) {
            plain = Array(text.utf8)
            escaped = Array(QueryString.escape(text).utf8)
        }
    }

    /// A parameter to write.
    struct Pair {
        let name: Name
        let bytes: [UInt8]

        init(_ pair: NamedValue) {
            name = Name(pair.name)
            bytes =
                name.escaped + [UInt8(ascii: "=")] + Array(QueryString.escape(pair.value).utf8)
        }
    }

    init(_ rules: QueryRules) {
        removed = rules.remove.map { Array($0.utf8) }
        renamed = rules.rename.map { (Array($0.name.utf8), Name($0.value)) }
        set = rules.set.map(Pair.init)
        added = rules.add.map(Pair.init)
        defaults = rules.defaults.map(Pair.init)
    }

    /// Whether no query is ever changed.
    var isEmpty: Bool {
        removed.isEmpty && renamed.isEmpty && set.isEmpty && added.isEmpty && defaults.isEmpty
    }

    /// The change to a query; `nil` if the target has none.
    func query(replacing query: Span<UInt8>?) -> Outcome {
        guard !isEmpty else { return .kept }
        var parameters = Parameters(query)
        for name in removed { parameters.remove(name) }
        for (from, to) in renamed { parameters.rename(from, to: to) }
        for pair in set { parameters.set(pair) }
        for pair in added { parameters.append(pair) }
        for pair in defaults where !parameters.contains(pair.name.plain) {
            parameters.append(pair)
        }
        guard parameters.isChanged else { return .kept }
        return parameters.isEmpty ? .removed : .replaced(parameters.bytes)
    }
}

/// The parameters of a query while they are being changed.
private struct Parameters {
    private struct Parameter {
        /// Percent-decoded.
        var name: [UInt8]
        var bytes: [UInt8]

        /// Nothing between two `&` is not a parameter.
        func isNamed(_ name: [UInt8]) -> Bool { self.name == name && !bytes.isEmpty }
    }

    private var all: [Parameter] = []
    private(set) var isChanged = false

    init(_ query: Span<UInt8>?) {
        // An empty query has no parameters, rather than one without a name.
        guard let query, !query.isEmpty else { return }
        var start = 0
        while start <= query.count {
            var end = start
            while end < query.count, query[end] != UInt8(ascii: "&") { end += 1 }
            let bytes = query.extracting(start..<end)
            all.append(Parameter(name: Self.name(of: bytes), bytes: [UInt8](copying: bytes)))
            start = end + 1
        }
    }

    /// The part before the first `=`. An invalid escape stands for itself.
    private static func name(of parameter: Span<UInt8>) -> [UInt8] {
        var name: [UInt8] = []
        var index = 0
        while index < parameter.count, parameter[index] != UInt8(ascii: "=") {
            let byte = parameter[index]
            index += 1
            if byte == UInt8(ascii: "%"), index + 1 < parameter.count,
                let escaped = PercentCoding.byte(parameter[index], parameter[index + 1])
            {
                name.append(escaped)
                index += 2
            } else {
                name.append(byte == UInt8(ascii: "+") ? 0x20 : byte)
            }
        }
        return name
    }

    var isEmpty: Bool { all.isEmpty }

    var bytes: [UInt8] { Array(all.map(\.bytes).joined(separator: [UInt8(ascii: "&")])) }

    func contains(_ name: [UInt8]) -> Bool { all.contains { $0.isNamed(name) } }

    mutating func remove(_ name: [UInt8]) {
        let count = all.count
        all.removeAll { $0.isNamed(name) }
        isChanged = isChanged || all.count < count
    }

    mutating func rename(_ name: [UInt8], to new: QueryChanges.Name) {
        for index in all.indices where all[index].isNamed(name) {
            let value = all[index].bytes.drop { $0 != UInt8(ascii: "=") }
            all[index] = Parameter(name: new.plain, bytes: new.escaped + value)
            isChanged = true
        }
    }

    /// Replaces all parameters with this name by one, or appends it.
    mutating func set(_ pair: QueryChanges.Pair) {
        guard let first = all.firstIndex(where: { $0.isNamed(pair.name.plain) }) else {
            return append(pair)
        }
        let count = all.count
        isChanged = isChanged || all[first].bytes != pair.bytes
        all[first].bytes = pair.bytes
        let rest = all[(first + 1)...].filter { !$0.isNamed(pair.name.plain) }
        all.replaceSubrange((first + 1)..., with: rest)
        isChanged = isChanged || all.count < count
    }

    mutating func append(_ pair: QueryChanges.Pair) {
        all.append(Parameter(name: pair.name.plain, bytes: pair.bytes))
        isChanged = true
    }
}
