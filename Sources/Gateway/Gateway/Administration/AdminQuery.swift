import HTTPCore

/// The query of a request to the administrative API: `name=value` pairs, percent-encoded.
struct AdminQuery {
    private let pairs: [(name: String, value: String)]

    /// - Parameter target: a path with its query, as it was sent.
    init(target: String) {
        let query = target.drop { $0 != "?" }.dropFirst()
        pairs = query.split(separator: "&").map { pair in
            let sides = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            return (Self.decoded(sides[0]), sides.count > 1 ? Self.decoded(sides[1]) : "")
        }
    }

    /// The value of a name; `nil` if it does not occur. Of several, the last one counts.
    subscript(name: String) -> String? { pairs.last { $0.name == name }?.value }

    /// All values of a name.
    func all(_ name: String) -> [String] { pairs.filter { $0.name == name }.map(\.value) }

    /// The first name that is none of these; `nil` if there is none.
    func unknown(besides names: [String]) -> String? {
        pairs.first { !names.contains($0.name) }?.name
    }

    private static func decoded(_ text: Substring) -> String {
        let spaced = text.utf8.map { $0 == UInt8(ascii: "+") ? 0x20 : $0 }
        return String(decoding: PercentCoding.decodeEscapes(spaced), as: UTF8.self)
    }
}
