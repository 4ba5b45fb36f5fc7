/// The text of an HTTP Archive (HAR 1.2) around its entries, which are JSON.
enum HARLog {
    /// What is in front of the first entry.
    static func beginning(version: String) -> String {
        "{\"log\":{\"version\":\"1.2\","
            + "\"creator\":{\"name\":\"Pinfold\",\"version\":\"\(version)\"},"
            + "\"pages\":[],\"entries\":["
    }

    /// What is in front of each entry.
    /// - Parameter isFirst: whether there is none before it.
    static func separator(isFirst: Bool) -> String { isFirst ? "\n" : ",\n" }

    /// What is behind the last entry.
    /// - Parameter dropped: how many exchanges are not in it because they came too fast.
    static func ending(dropped: Int64) -> String {
        "\n]" + (dropped > 0 ? ",\"_dropped\":\(dropped)" : "") + "}}\n"
    }
}

/// Bytes that arrive in parts, as lines.
struct ArrivingLines: Sendable {
    /// The most bytes of a line.
    static let limit = 64 << 20

    private var rest: [UInt8] = []

    /// The lines that are complete with these bytes, without their ends and without empty ones;
    /// `nil` if one is too long.
    mutating func add(_ bytes: [UInt8]) -> [[UInt8]]? {
        guard let last = bytes.lastIndex(of: UInt8(ascii: "\n")) else {
            rest += bytes
            return rest.count > Self.limit ? nil : []
        }
        let complete = rest + bytes[..<last]
        rest = Array(bytes[(last + 1)...])
        return complete.split(separator: UInt8(ascii: "\n")).map(Array.init)
    }
}
